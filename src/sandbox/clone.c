/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clones. A clone is a new sandbox whose record names its source until its files are on the disk:
 * until then, copying them is its driver's first step. A crash in between changes nothing: the
 * record still says what is to be done, and a copy that was finished is found.
 *
 * Two waits meet here. A clone waits until its source has files of its own, and a source that is
 * deleted waits until its clones have theirs. They never form a cycle:
 *
 * - A sandbox without files of its own (a clone that is not copied yet) never waits for its clones.
 *   When it is deleted, it passes them on to its own source: their files are the same.
 * - A sandbox with files waits only for copies of these files, and such a copy waits for nobody.
 *
 * What makes this safe: a clone is recorded, or tried again, only while its source is not being
 * deleted, with no wait between that check and the moment from which the source's deletion sees it.
 */

#include "sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "loop/co.h"
#include "sandbox/create.h"
#include "sandbox/history_rules.h"
#include "sandbox/history_state.h"
#include "sandbox/metadata.h"

enum { LOOK_MS = 100 };

/* ---- the request ---- */

static const char *or_else(const char *given, const char *inherited)
{
    return given != NULL ? given : inherited;
}

/* What a source has that is tightened may be more than its clone may have. */
static void cap_resources(const struct sandbox_info *source, const struct trust_options *security,
                          struct arena *arena, struct sandbox_resources *resources)
{
    uint64_t most = security->memory_limit_mb << 20;
    if (resources->memory == NULL && most != 0 && source->limits.memory_bytes > most)
        resources->memory = trust_memory(security, arena);
    most = security->cpu_limit_millis;
    if (resources->cpu == NULL && most != 0 && source->limits.cpu_millis > most)
        resources->cpu = trust_cpu(security, arena);
}

/* A smaller disk than the source's may be too small for what it holds already. The copy itself
 * looks again, when nothing changes any more; this is for those who can still be told. */
static int check_disk(struct sandboxes *s, const struct sandbox_info *source,
                      const struct spec_limits *limits, struct error *err)
{
    if (limits->disk_bytes >= source->limits.disk_bytes)
        return 0;
    return s->provider->ops->fits(s->provider, source->id, limits->disk_bytes, err);
}

static int check_request(struct sandboxes *s, const struct sandbox_clone *request,
                         const struct sandbox_info *source, struct store_sandbox *row,
                         struct trust_options *security, struct error *err)
{
    const struct sandbox_metadata metadata = {row->labels, request->external_id,
                                              request->display_name, request->blaxel_spec,
                                              request->e2b_spec};
    struct sandbox_resources resources = {
        .cpu = row->cpu, .memory = row->memory, .disk = row->disk};
    struct spec_limits limits;
    resources_unpack(row->resources, &resources);
    if (source->status == SANDBOX_DELETING)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "sandbox \"%s\" is being deleted",
                         source->name);
    if (request->image != NULL && strcmp(request->image, source->image) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.image: a clone has its source's files, made from \"%.80s\"",
                         source->image);
    if (spec_limits(&s->admission.machine, &resources, &limits, err) < 0 ||
        trust_check_limits(&request->security, limits.memory_bytes, limits.cpu_millis, security,
                           err) < 0 ||
        (request->env != NULL && spec_check_env(*request->env, err) < 0))
        return -1;
    struct auto_lower lower;
    if (metadata_check(&metadata, err) < 0 ||
        (row->auto_lower.len > 0 && auto_lower_parse(row->auto_lower, &lower, err) < 0) ||
        history_rules_check(row->history, err) < 0)
        return -1;
    return check_disk(s, source, &limits, err);
}

int sandboxes_clone(struct sandboxes *s, const struct sandbox_clone *request, struct arena *arena,
                    struct sandbox_info *ret_info, struct error *err)
{
    static const struct lifespan_change as_it_is = {.sets = 0};
    struct sandbox_info source;
    struct sandbox_resources resources = request->resources;
    struct trust_options security;
    struct slice network;
    struct store_lifespan lifespan;
    if (sandboxes_get(s, request->workspace, request->source, arena, &source, err) < 0 ||
        trust_resolve(&request->security, &source.security, &security, err) < 0 ||
        network_resolve(s, request->workspace, &request->security, &request->network,
                        &source.network, &security, arena, &network, err) < 0 ||
        sandbox_new_lifespan(&source.lifespan,
                             request->lifespan != NULL ? request->lifespan : &as_it_is, &lifespan,
                             err) < 0)
        return -1;
    cap_resources(&source, &security, arena, &resources);
    resources = resources_over(&resources, &source.resources);
    struct spec_limits limits;
    if (spec_limits(&s->admission.machine, &resources, &limits, err) < 0)
        return -1;
    spec_settle(&resources, &limits, arena);
    struct store_sandbox row = {
        .workspace = request->workspace,
        .name = request->name,
        .image = source.image,
        .cpu = resources.cpu,
        .memory = resources.memory,
        .disk = resources.disk,
        .resources = resources_pack(&resources, arena),
        .auto_lower = request->auto_lower != NULL ? *request->auto_lower : source.auto_lower,
        .history = request->history != NULL
                       ? history_rules_over(*request->history, source.history, arena)
                       : source.history,
        .env = request->env != NULL ? *request->env : source.env,
        .enabled = request->enabled != NULL ? *request->enabled : source.enabled,
        .restart =
            restart_policy_text(request->restart != NULL ? *request->restart : source.restart),
        .created_by = request->actor,
        .updated_by = request->actor,
        .labels = request->labels != NULL ? *request->labels : source.metadata.labels,
        .external_id = request->external_id,
        .display_name = request->display_name,
        .blaxel_spec = or_else(request->blaxel_spec, source.metadata.blaxel_spec),
        .e2b_spec = or_else(request->e2b_spec, source.metadata.e2b_spec),
        .clone_of = source.id,
        .trust_level = trust_level_text(security.level),
        .lifespan = &lifespan,
        .network = network,
    };
    const struct first_event event = {
        "CLONE", arena_printf(arena, "Sandbox cloned successfully from %s", source.name)};
    if (check_request(s, request, &source, &row, &security, err) < 0)
        return -1;
    row.security = trust_text(&security, arena);
    /* One that is named as its group's has its clone beside it. */
    const char *group = strchr(request->source, '/') != NULL ? source.group : NULL;
    return sandbox_add(s, group, &row, &event, arena, ret_info, err);
}

/* ---- the source ---- */

static struct sandbox *find_by_id(const struct sandboxes *s, const char *id)
{
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    return sb;
}

/* A clone that is not copied yet has no files; a sandbox that is created has none, or not all. */
static bool gets_files(const struct sandbox *source)
{
    return !source->gone && source->goal != GOAL_DELETED &&
           (source->clone_of != NULL || source->status == SANDBOX_CREATING);
}

int sandbox_check_source(struct sandboxes *s, const char *source_id, struct error *err)
{
    const struct sandbox *source = find_by_id(s, source_id);
    if (source == NULL)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "the clone's source was deleted");
    if (source->goal == GOAL_DELETED)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "sandbox \"%s\" is being deleted",
                         source->name);
    if (source->clone_of != NULL && source->status == SANDBOX_FAILED)
        return error_set(err, ERROR_CONFLICT,
                         "sandbox \"%s\" has no files: it is a clone that could not be copied; "
                         "start it to try again",
                         source->name);
    return 0;
}

/* Waits until the source has its files. *ret_source is held; NULL: there is no such sandbox. */
static int wait_for_source(struct sandbox *sb, struct sandbox **ret_source, struct error *err)
{
    for (;;) {
        struct sandbox *source = find_by_id(sb->owner, sb->clone_of);
        if (sb->goal == GOAL_DELETED || sb->owner->closing)
            return error_set(err, ERROR_CANCELLED, "the clone is not wanted any more");
        if (source != NULL && source->clone_of != NULL && source->status == SANDBOX_FAILED)
            return error_set(err, ERROR_FILE_NOT_FOUND,
                             "its source, sandbox \"%s\", is a clone that could not be copied",
                             source->name);
        if (source != NULL)
            sandbox_hold(source);
        /* One that is deleted before it has files passes its clones on in a moment. */
        if (source == NULL || (!gets_files(source) && source->clone_of == NULL)) {
            *ret_source = source;
            return 0;
        }
        int r = co_cond_wait(sb->owner->loop, &source->changed, LOOK_MS, err);
        sandbox_drop(source);
        if (r < 0 && err->code != ERROR_TIMEOUT)
            return -1;
    }
}

/* ---- the copy ---- */

int sandbox_copy_once(struct sandbox *sb, struct error *err)
{
    struct provider *p = sb->owner->provider;
    _cleanup_sandbox_ struct sandbox *source = NULL;
    char source_id[SANDBOX_ID_LEN + 1];
    if (wait_for_source(sb, &source, err) < 0)
        return -1;
    snprintf(source_id, sizeof(source_id), "%s", sb->clone_of);
    const struct warden_clone request = {.id = sb->id,
                                         .source = source_id,
                                         .hostname = sb->name,
                                         .disk_bytes = sb->limits.disk_bytes};
    /* Before its files: what they have over it is what the clone has changed. */
    history_inherit(sb, source_id);
    sb->copying = true;
    int r = p->ops->clone(p, &request, err);
    sb->copying = false;
    if (sb->given_up) {
        sb->given_up = false;
        return error_set(err, ERROR_CANCELLED, "the copy was given up");
    }
    /* A source that was never started has no files: its clone starts from its image, as it would.
     * A source that is being deleted keeps its files until this clone has its own. */
    if (r < 0 && err->code == ERROR_FILE_NOT_FOUND && source != NULL && !source->gone)
        return 0;
    return r;
}

static void remove_copy(void *arg)
{
    struct sandbox *sb = arg;
    struct sandboxes *s = sb->owner;
    struct error ignored; /* whoever deletes the sandbox removes it again, and is told */
    s->provider->ops->remove(s->provider, sb->id, &ignored);
    sandbox_drop(sb);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

void sandbox_give_up_copy(struct sandbox *sb)
{
    struct sandboxes *s = sb->owner;
    struct error err;
    if (!sb->copying)
        return;
    sb->given_up = true;
    sandbox_hold(sb);
    s->drivers++;
    if (co_spawn(s->loop, remove_copy, sb, NULL, &err) == 0)
        return;
    log_error("sandbox %s: ending its copy: %s", sb->id, err.message);
    sandbox_drop(sb);
    s->drivers--;
}

/* ---- sources ---- */

void sandbox_forget_source(struct sandbox *sb)
{
    sb->owner->clones -= sb->clone_of != NULL;
    free(steal_ptr(sb->clone_of));
}

/* A clone whose driver is at work is one until the end of that, which records how it went. */
static bool needs_source(const struct sandbox *sb)
{
    return sb->clone_of != NULL && sb->goal != GOAL_DELETED &&
           (sb->driven || sb->status == SANDBOX_CREATING || sb->status == SANDBOX_STARTING ||
            sb->status == SANDBOX_STOPPING);
}

/* Directly, or through others that have no files of their own yet. */
static bool comes_from(const struct sandbox *sb, const struct sandbox *source)
{
    while (sb != NULL && sb->clone_of != NULL) {
        if (strcmp(sb->clone_of, source->id) == 0)
            return true;
        sb = find_by_id(source->owner, sb->clone_of);
    }
    return false;
}

static struct sandbox *find_clone(const struct sandbox *source, bool copying)
{
    if (source->owner->clones == 0)
        return NULL;
    for (struct sandbox *sb = source->owner->ids; sb != NULL; sb = sb->by_id.next)
        if (copying ? sb->copying && sb->clone_of != NULL && strcmp(sb->clone_of, source->id) == 0
                    : needs_source(sb) && comes_from(sb, source))
            return sb;
    return NULL;
}

static struct sandbox *find_direct_clone(const struct sandbox *source)
{
    struct sandbox *sb = source->owner->clones == 0 ? NULL : source->owner->ids;
    while (sb != NULL && (sb->clone_of == NULL || strcmp(sb->clone_of, source->id) != 0))
        sb = sb->by_id.next;
    return sb;
}

int sandbox_pass_clones_on(struct sandbox *source, struct error *err)
{
    struct sandbox *sb;
    while (source->clone_of != NULL && (sb = find_direct_clone(source)) != NULL) {
        char *next = strdup(source->clone_of);
        if (next == NULL)
            return error_sys(err, "passing a clone on");
        free(sb->clone_of);
        sb->clone_of = next;
        co_cond_wake_all(&source->changed);
        sandbox_hold(sb);
        int r = sandbox_save(sb, false, err);
        sandbox_drop(sb);
        if (r < 0)
            return -1;
    }
    return 0;
}

int sandbox_wait_for_clones(struct sandbox *source, bool copying, struct error *err)
{
    if (source->clone_of != NULL)
        return 0; /* it has no files that anybody could wait for */
    for (;;) {
        _cleanup_sandbox_ struct sandbox *sb = find_clone(source, copying);
        if (sb == NULL)
            return 0;
        sandbox_hold(sb);
        if (co_cond_wait(source->owner->loop, &sb->changed, LOOK_MS, err) < 0 &&
            err->code != ERROR_TIMEOUT)
            return -1;
    }
}
