/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clones. One is a new sandbox that is recorded with the id of its source, and forgets it when its
 * files are there: until then its driver's first step is the copy. A crash in between changes
 * nothing: the record still says what is to be done, and a copy that is there already is found
 * there. As long as a clone waits for its files its source is not deleted, whoever asked for that.
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
    /* The check may have waited, and its source be gone. */
    if (sandbox_find(s, request->workspace, source.id, err) == NULL)
        return -1;
    return sandbox_add(s, group, &row, &event, arena, ret_info, err);
}

/* ---- the copy ---- */

static struct sandbox *find_source(const struct sandbox *sb)
{
    struct sandbox *source;
    HASH_FIND(by_id, sb->owner->ids, sb->clone_of, strlen(sb->clone_of), source);
    return source;
}

/* A source that is being made has no files yet, or not all of them. */
static int wait_for_source(struct sandbox *sb, struct sandbox *source, struct error *err)
{
    while (source->status == SANDBOX_CREATING && !source->gone && sb->goal != GOAL_DELETED)
        if (co_cond_wait(sb->owner->loop, &source->changed, LOOK_MS, err) < 0 &&
            err->code != ERROR_TIMEOUT)
            return -1;
    if (source->clone_of != NULL)
        return error_set(err, ERROR_CONFLICT, "sandbox \"%s\", its source, never got its own files",
                         source->name);
    return 0;
}

int sandbox_copy_once(struct sandbox *sb, struct error *err)
{
    struct provider *p = sb->owner->provider;
    _cleanup_sandbox_ struct sandbox *source = find_source(sb);
    if (source != NULL) {
        sandbox_hold(source);
        if (wait_for_source(sb, source, err) < 0)
            return -1;
    }
    if (sb->goal == GOAL_DELETED || sb->owner->closing)
        return error_set(err, ERROR_CANCELLED, "it is not wanted any more");
    const struct warden_clone request = {.id = sb->id,
                                         .source = sb->clone_of,
                                         .hostname = sb->name,
                                         .disk_bytes = sb->limits.disk_bytes};
    /* Before its files: what they have over it is what the clone has changed. */
    history_inherit(sb, sb->clone_of);
    sb->copying = true;
    int r = p->ops->clone(p, &request, err);
    sb->copying = false;
    if (sb->given_up) {
        sb->given_up = false;
        return error_set(err, ERROR_CANCELLED, "the copy was given up");
    }
    /* One that was never started has no files: its clone starts from its image, as it would. */
    if (r < 0 && err->code == ERROR_FILE_NOT_FOUND && source != NULL &&
        source->status == SANDBOX_STOPPED)
        return 0;
    return r;
}

void sandbox_give_up_copy(struct sandbox *sb)
{
    struct provider *p = sb->owner->provider;
    struct error ignored;
    if (!sb->copying)
        return;
    sb->given_up = true;
    p->ops->remove(p, sb->id, &ignored);
}

/* ---- sources ---- */

void sandbox_forget_source(struct sandbox *sb)
{
    sb->owner->clones -= sb->clone_of != NULL;
    free(steal_ptr(sb->clone_of));
}

static bool waits_for_files(const struct sandbox *sb)
{
    return sb->status == SANDBOX_CREATING || sb->status == SANDBOX_STARTING ||
           sb->status == SANDBOX_STOPPING;
}

static struct sandbox *find_clone(const struct sandbox *source, bool copying)
{
    if (source->owner->clones == 0)
        return NULL;
    for (struct sandbox *sb = source->owner->ids; sb != NULL; sb = sb->by_id.next)
        if (sb->clone_of != NULL && (copying ? sb->copying : waits_for_files(sb)) &&
            strcmp(sb->clone_of, source->id) == 0)
            return sb;
    return NULL;
}

int sandbox_wait_for_clones(struct sandbox *source, bool copying, struct error *err)
{
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
