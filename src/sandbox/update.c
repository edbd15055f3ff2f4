/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changes of a sandbox that exists. Everything that can be refused is checked first, then the
 * kernel is given the new limits (and may refuse them), then the rest is replaced and recorded in
 * one go. Its network's policy is part of the record, and told after it: whoever was away is told
 * again when he is back.
 *
 * Limits are in two places, the kernel and the record, so a crash can leave them apart: the record
 * is marked before the kernel is touched, and recovery gives a marked sandbox's kernel the limits
 * of its record, which are the old ones until everything is done. Several sandboxes are changed as
 * one by the same means: first the kernel's limits of each, then all records in one transaction.
 */

#include "sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/timetext.h"
#include "loop/co.h"
#include "loop/task.h"
#include "sandbox/create.h"
#include "sandbox/history_state.h"
#include "sandbox/metadata.h"

enum { WAIT_MS = 120 * 1000, FACTOR_MAX = 1000 };

/* What it is to be, whole: on the heap, as a sandbox keeps it. */
struct change {
    struct sandbox_resources resources;
    struct spec_limits limits;
    struct trust_options security;
    char *env;
    size_t env_len;
    struct sandbox_metadata metadata;
    struct lifespan lifespan;
    struct slice network;      /* its policy, packed; of a request that is about it */
    struct spec_limits before; /* what it had */
    bool waits;                /* the kernel has the new limits, and the record has not */
};

static void change_release(struct change *change)
{
    resources_release(&change->resources);
    free(change->env);
    metadata_release(&change->metadata);
}

/* ---- what it is to be ---- */

static size_t name_len(const char *item)
{
    return strcspn(item, "=");
}

static bool names_same(const char *a, const char *b)
{
    return name_len(a) == name_len(b) && strncmp(a, b, name_len(a)) == 0;
}

static size_t append(char *out, size_t len, const char *item)
{
    size_t size = strlen(item) + 1;
    memcpy(out + len, item, size);
    return len + size;
}

/* `over` changes what it names in `under`: "NAME=value" is put in place of it, or at the end, and
 * "NAME" alone takes it away. */
static struct slice merge(struct arena *arena, struct slice under, struct slice over)
{
    char *out = arena_alloc(arena, under.len + over.len + 1);
    size_t len = 0;
    strv_each (item, under) {
        bool named = false;
        strv_each (change, over)
            named = named || names_same(item, change);
        if (!named)
            len = append(out, len, item);
    }
    strv_each (change, over)
        if (strchr(change, '=') != NULL)
            len = append(out, len, change);
    return (struct slice){out, len};
}

static struct slice new_list(const struct sandbox_update *request, const struct slice *given,
                             struct slice before, struct arena *arena)
{
    if (given == NULL)
        return before;
    return request->merge ? merge(arena, before, *given) : *given;
}

static const char *or_else(const char *given, const char *before)
{
    return given != NULL ? given : before;
}

static char *copy_bytes(struct slice bytes)
{
    char *copy = malloc(bytes.len + 1);
    if (copy != NULL && bytes.len > 0)
        memcpy(copy, bytes.data, bytes.len);
    return copy;
}

/* Its options stay: what runs in it was started by them. Its limits may become larger than they
 * allow only for those who may loosen them. */
static int plan_security(const struct sandbox *sb, const struct sandbox_update *request,
                         struct change *change, struct error *err)
{
    struct trust_request wanted = request->security;
    struct trust_options asked;
    change->security = sb->security;
    if (sandbox_network_agrees(sb, &request->security, err) < 0)
        return -1;
    if (wanted.level != NULL || wanted.given != 0) {
        wanted.may_loosen = true; /* who asks for what is there loosens nothing */
        if (wanted.level != NULL && strcmp(wanted.level, trust_level_text(sb->security.level)) == 0)
            wanted.level = NULL;
        if (trust_resolve(&wanted, &sb->security, &asked, err) < 0)
            return -1;
        if (!trust_same(&asked, &sb->security))
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "spec.trustLevel and spec.security: a sandbox keeps what it was made "
                             "with; a clone can be tighter");
    }
    const struct trust_request limits = {.may_loosen = request->security.may_loosen};
    bool same = change->limits.memory_bytes == sb->limits.memory_bytes &&
                change->limits.cpu_millis == sb->limits.cpu_millis;
    if (same)
        return 0;
    return trust_check_limits(&limits, change->limits.memory_bytes, change->limits.cpu_millis,
                              &change->security, err);
}

/* Everything that it was given, times the factor. */
static int multiply(const struct sandbox *sb, const struct sandbox_update *request,
                    struct arena *arena, struct sandbox_resources *resources, struct error *err)
{
    enum { PAGE = 4096 };
    if (request->factor == 0)
        return 0;
    if (resources_given(&request->resources))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "factor: either it or the resources themselves, not both");
    if (!(request->factor > 0 && request->factor <= FACTOR_MAX))
        return error_set(err, ERROR_INVALID_ARGUMENT, "factor: %g is not above 0 and at most %d",
                         request->factor, FACTOR_MAX);
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        if (sb->resources.of[i] == NULL)
            continue;
        uint64_t value = (uint64_t)((double)sb->limits.of[i] * request->factor);
        if (i == (int)RESOURCE_MEMORY || i == (int)RESOURCE_DISK)
            value = (value + PAGE - 1) / PAGE * PAGE;
        resources->of[i] = spec_text((enum resource)i, value, arena);
    }
    return 0;
}

static int plan_change(const struct sandbox *sb, const struct sandbox_update *request,
                       struct arena *arena, struct change *change, struct error *err)
{
    const struct sandbox_metadata *had = &sb->metadata;
    struct sandbox_resources resources = resources_over(&request->resources, &sb->resources);
    struct auto_lower lower;
    if (multiply(sb, request, arena, &resources, err) < 0)
        return -1;
    if (request->auto_lower != NULL && request->auto_lower->len > 0 &&
        auto_lower_parse(*request->auto_lower, &lower, err) < 0)
        return -1;
    if (request->history != NULL && history_rules_check(*request->history, err) < 0)
        return -1;
    struct slice env = new_list(request, request->env, (struct slice){sb->env, sb->env_len}, arena);
    const struct sandbox_metadata metadata = {
        .labels = new_list(request, request->labels, had->labels, arena),
        .external_id = or_else(request->external_id, had->external_id),
        .display_name = or_else(request->display_name, had->display_name),
        .blaxel_spec = or_else(request->blaxel_spec, had->blaxel_spec),
        .e2b_spec = or_else(request->e2b_spec, had->e2b_spec),
    };
    if (request->image != NULL && strcmp(request->image, sb->image) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.image: a sandbox keeps its image, \"%.80s\"", sb->image);
    change->lifespan = sb->life.rules;
    if (request->lifespan != NULL &&
        lifespan_merge(&sb->life.rules, request->lifespan, sb->created_ms, time_now_ms(),
                       request->may_extend, &change->lifespan, err) < 0)
        return -1;
    if (spec_check_env(env, err) < 0 || metadata_check(&metadata, err) < 0 ||
        sandbox_check_external(sb->owner, sb->workspace, metadata.external_id, sb, err) < 0)
        return -1;
    if (spec_limits(&sb->owner->admission.machine, &resources, &change->limits, err) < 0)
        return -1;
    spec_settle(&resources, &change->limits, arena);
    change->env = copy_bytes(env);
    change->env_len = env.len;
    if (metadata_copy(&metadata, &change->metadata) < 0 ||
        resources_copy(&resources, &change->resources) < 0 || change->env == NULL)
        return error_sys(err, "changing a sandbox");
    return plan_security(sb, request, change, err);
}

/* ---- limits ---- */

static int apply_once(struct sandbox *sb, struct error *err)
{
    struct provider *p = sb->owner->provider;
    struct plan plan;
    spec_plan(sb->id, sb->name, "", &sb->limits, &plan);
    const struct warden_update update = {
        .id = sb->id,
        .memory_bytes = plan.memory_bytes,
        .cpu_millis = plan.cpu_millis,
        .pids_max = plan.pids_max,
        .disk_bytes = plan.disk_bytes,
        .disk_read_bytes = plan.disk_read_bytes,
        .disk_write_bytes = plan.disk_write_bytes,
        .disk_read_ops = plan.disk_read_ops,
        .disk_write_ops = plan.disk_write_ops,
        .memory_bandwidth = spec_bandwidth_share(&sb->owner->admission.machine, &sb->limits)};
    if (p->ops->update(p, &update, err) < 0)
        return -1;
    return sb->network.address[0] == '\0' ? 0 : sandbox_network_renew(sb, err); /* its rates */
}

static bool in_between(const struct sandbox *sb)
{
    return !sb->gone && (sandbox_comes_up(sb) || sandbox_comes_down(sb));
}

static int check_alive(const struct sandbox *sb, struct error *err)
{
    if (sb->gone || sb->status == SANDBOX_DELETING)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "there is no sandbox \"%s\"",
                         sandbox_path(sb));
    return 0;
}

static void mark(struct sandbox *sb, bool unsettled)
{
    struct error err;
    sb->unsettled = unsettled;
    if (check_alive(sb, &err) == 0 && sandbox_save(sb, false, &err) < 0)
        log_error("sandbox %s: recording its state: %s", sb->id, err.message);
}

/* A start that comes meanwhile takes the new limits into its plan already. */
static int change_limits(struct sandbox *sb, const struct spec_limits *limits, struct error *err)
{
    struct error ignored;
    const struct spec_limits before = sb->limits;
    if (memcmp(&before, limits, sizeof(before)) == 0)
        return 0;
    while (in_between(sb))
        if (co_cond_wait(sb->owner->loop, &sb->changed, WAIT_MS, err) < 0)
            return -1;
    struct admission *admission = &sb->owner->admission;
    if (check_alive(sb, err) < 0 || admission_check_single(admission, &before, limits, err) < 0 ||
        pools_reserve(sb->owner, &sb->promise, sb->promise.kind, limits, err) < 0)
        return -1;
    mark(sb, true);
    sb->limits = *limits;
    if (sandbox_with_patience(sb, apply_once, err) == 0)
        return 0;
    sb->limits = before;
    if (!sb->gone)
        admission_count(admission, &sb->promise, sb->promise.kind, &before);
    if (check_alive(sb, &ignored) == 0 && err->code != ERROR_RESOURCE_IN_USE &&
        sandbox_with_patience(sb, apply_once, &ignored) < 0)
        log_error("sandbox %s: its limits: %s", sb->id, ignored.message);
    mark(sb, false);
    return -1;
}

void sandbox_restore_limits(struct sandbox *sb)
{
    struct error err;
    if (sb->up && sandbox_with_patience(sb, apply_once, &err) < 0)
        log_error("sandbox %s: its limits: %s", sb->id, err.message);
    mark(sb, false);
}

/* ---- its network ---- */

static bool names_network(const struct sandbox_update *request)
{
    return request->network.given != 0 || request->network.replace;
}

/* Whether it can have one depends on how it was started: so not while that is being decided. */
static int plan_network(struct sandbox *sb, const struct sandbox_update *request,
                        struct arena *arena, struct change *change, struct error *err)
{
    if (!names_network(request))
        return 0;
    while (in_between(sb))
        if (co_cond_wait(sb->owner->loop, &sb->changed, WAIT_MS, err) < 0)
            return -1;
    return sandbox_network_change(sb, &request->network, request->security.may_loosen, arena,
                                  &change->network, err);
}

/* After it was recorded. One that ended meanwhile starts with it. */
static int tell_network(struct sandbox *sb, const struct sandbox_update *request, struct error *err)
{
    if (!names_network(request) || !sb->up || sb->gone || sandbox_network_apply(sb, err) == 0 ||
        err->code == ERROR_NOT_RUNNING)
        return 0;
    return -1;
}

/* ---- all of it ---- */

/* Up to here it can be undone. What fails because it is being deleted is SANDBOX_NOT_FOUND. */
static int prepare(struct sandbox *sb, const struct sandbox_update *request, struct arena *arena,
                   struct change *change, struct error *err)
{
    change->before = sb->limits;
    change->waits = plan_change(sb, request, arena, change, err) == 0 &&
                    plan_network(sb, request, arena, change, err) == 0 &&
                    change_limits(sb, &change->limits, err) == 0;
    return check_alive(sb, err) < 0 || !change->waits ? -1 : 0;
}

static void undo(struct sandbox *sb, struct change *change)
{
    struct error err;
    if (!change->waits || check_alive(sb, &err) < 0)
        return;
    if (change_limits(sb, &change->before, &err) == 0)
        mark(sb, false);
    else
        log_error("sandbox %s: giving its limits back: %s", sb->id, err.message);
}

/* Whether it is about more than the network. */
static bool changes_others(const struct sandbox_update *request)
{
    return resources_given(&request->resources) || request->factor != 0 ||
           request->auto_lower != NULL || request->history != NULL || request->env != NULL ||
           request->labels != NULL || request->external_id != NULL ||
           request->display_name != NULL || request->blaxel_spec != NULL ||
           request->e2b_spec != NULL || request->enabled != NULL || request->image != NULL ||
           request->restart != NULL || request->security.level != NULL ||
           request->security.given != 0 || request->lifespan != NULL;
}

static const char *event_text(const struct sandbox_update *request)
{
    return names_network(request) && !changes_others(request) ? "Network policy changed"
                                                              : "Sandbox updated successfully";
}

/* It is what it was to become. Nothing waits; it is to be recorded next. */
static void take(struct sandbox *sb, const struct sandbox_update *request, struct change *change)
{
    struct error ignored;
    struct change old = {.resources = sb->resources,
                         .limits = sb->limits,
                         .env = sb->env,
                         .env_len = sb->env_len,
                         .metadata = sb->metadata};
    sb->resources = change->resources;
    sb->limits = change->limits;
    sb->security = change->security;
    sb->env = change->env;
    sb->env_len = change->env_len;
    sb->metadata = change->metadata;
    if (request->lifespan != NULL)
        sandbox_set_lifespan(sb, &change->lifespan, request->lifespan->sets & 1u << LIFESPAN_TTL);
    *change = old; /* to be released */
    if (request->enabled != NULL)
        sb->enabled = *request->enabled;
    if (request->restart != NULL)
        restart_set_policy(sb, *request->restart);
    sb->unsettled = false;
    snprintf(sb->updated_by, sizeof(sb->updated_by), "%s", request->actor);
    if (request->auto_lower != NULL)
        sandbox_set_auto_lower(sb, *request->auto_lower, &ignored); /* it was read before */
    if (request->history != NULL)
        history_change_rules(sb, *request->history);
    if (request->resized != NULL)
        sandbox_add_event(sb, "RESIZE", "SUCCESS", request->resized);
    else
        sandbox_add_event(sb, "UPDATE", "SUCCESS", event_text(request));
}

/* Switching it on or off starts or stops it; what is already so is fine. */
static int follow_enabled(struct sandbox *sb, const struct sandbox_update *request, bool was,
                          struct arena *arena, struct error *err)
{
    struct sandbox_info info;
    struct error refusal;
    if (sb->enabled == was)
        return 0;
    int r = sb->enabled ? sandboxes_start(sb->owner, sb->workspace, sb->id, request->actor, arena,
                                          &info, &refusal)
                        : sandboxes_stop(sb->owner, sb->workspace, sb->id, request->actor, arena,
                                         &info, &refusal);
    if (r == 0 || refusal.code == ERROR_ALREADY_RUNNING || refusal.code == ERROR_NOT_RUNNING)
        return 0;
    *err = refusal;
    return -1;
}

/* Where nothing but the network is asked for, and it is so already. */
static bool has_network(const struct sandbox *sb, const struct sandbox_update *request,
                        const struct change *change)
{
    return names_network(request) && !changes_others(request) &&
           slice_eq(change->network, (struct slice){sb->network.packed, sb->network.packed_len});
}

/* All of it is in one record: whoever is told of a part of it was told of the whole. */
static int record(struct sandbox *sb, const struct sandbox_update *request, struct change *change,
                  struct arena *arena, struct error *err)
{
    struct error ignored;
    const struct slice packed = change->network,
                       before = {arena_dup(arena, sb->network.packed, sb->network.packed_len),
                                 sb->network.packed_len};
    if (names_network(request) && sandbox_network_load(sb, packed, err) < 0) {
        undo(sb, change);
        return -1;
    }
    take(sb, request, change);
    sb->security.network_enabled = sb->network.mode != NET_NONE;
    if (sandbox_save(sb, true, err) == 0)
        return 0;
    if (names_network(request)) { /* nobody was told of the other one */
        sandbox_network_load(sb, before, &ignored);
        sb->security.network_enabled = sb->network.mode != NET_NONE;
    }
    return -1;
}

static int update(struct sandbox *sb, const struct sandbox_update *request, struct arena *arena,
                  struct error *err)
{
    _cleanup_(change_release) struct change change = {0};
    bool was = sb->enabled;
    if (prepare(sb, request, arena, &change, err) < 0)
        return -1;
    if (has_network(sb, request, &change))
        return 0;
    /* Somebody else can have taken the external id while the limits were changed, and it can have
     * been started without a network. */
    if (plan_network(sb, request, arena, &change, err) < 0 ||
        sandbox_check_external(sb->owner, sb->workspace, change.metadata.external_id, sb, err) <
            0) {
        undo(sb, &change);
        return -1;
    }
    if (record(sb, request, &change, arena, err) < 0 || tell_network(sb, request, err) < 0)
        return -1;
    return follow_enabled(sb, request, was, arena, err);
}

static int wait_for_turn(struct sandbox *sb, struct error *err)
{
    while (sb->updating)
        if (co_cond_wait(sb->owner->loop, &sb->changed, WAIT_MS, err) < 0)
            return -1;
    return check_alive(sb, err);
}

static void end_turn(struct sandbox *sb)
{
    sb->updating = false;
    co_cond_wake_all(&sb->changed);
}

struct work {
    struct sandbox *sb;
    const struct sandbox_update *request;
    struct arena *arena;
    struct error *err;
    int r;
};

static void update_main(void *arg)
{
    struct work *work = arg;
    work->r = update(work->sb, work->request, work->arena, work->err);
}

/* One at a time, and whoever waits looks at the revision when its turn has come. Once begun it is
 * brought to its end, or taken back, whether the caller is still there or not. */
static int update_in_turn(struct sandbox *sb, const struct sandbox_update *request,
                          struct arena *arena, struct error *err)
{
    if (wait_for_turn(sb, err) < 0)
        return -1;
    if (request->revision != 0 &&
        sandboxes_check_revision(sb->owner, sb->workspace, sb->id, request->revision, err) < 0)
        return -1;
    if (!changes_others(request) && !names_network(request))
        return 0;
    sb->updating = true;
    struct work work = {sb, request, arena, err, -1};
    struct task task;
    if (task_start(sb->owner->loop, &task, update_main, &work, err) == 0)
        task_join(&task);
    end_turn(sb);
    return work.r;
}

int sandboxes_update(struct sandboxes *s, const struct sandbox_update *request, struct arena *arena,
                     struct sandbox_info *ret_info, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = sandbox_find(s, request->workspace, request->name, err);
    if (sb == NULL)
        return -1;
    sandbox_hold(sb);
    if (update_in_turn(sb, request, arena, err) < 0)
        return -1;
    sandbox_info(sb, arena, ret_info);
    return 0;
}

/* ---- several as one ---- */

/* One that goes meanwhile is left out. */
static int prepare_next(struct sandbox *sb, const struct sandbox_update *request,
                        struct arena *arena, struct change *change, bool *ret_turn,
                        struct error *err)
{
    struct error why;
    int r = wait_for_turn(sb, &why);
    if (r == 0) {
        sb->updating = *ret_turn = true;
        r = prepare(sb, request, arena, change, &why);
    }
    if (r == 0 || why.code == ERROR_SANDBOX_NOT_FOUND)
        return 0;
    *err = why;
    return error_prefix(err, "sandbox \"%s\"", sb->name);
}

/* Nothing waits before the one transaction. */
static int record_all(struct sandbox **sandboxes, size_t count, struct change *changes,
                      const struct sandbox_update *request, struct arena *arena, struct error *err)
{
    struct store_sandbox *rows = arena_alloc(arena, (count + 1) * sizeof(*rows));
    struct store_event *events = arena_alloc(arena, (count + 1) * sizeof(*events));
    struct error ignored;
    size_t alive = 0;
    for (size_t i = 0; i < count; i++) {
        if (!changes[i].waits || check_alive(sandboxes[i], &ignored) < 0)
            continue;
        take(sandboxes[i], request, &changes[i]);
        sandbox_row(sandboxes[i], arena, &rows[alive], &events[alive]);
        alive++;
    }
    return count == 0 ? 0
                      : store_put_sandboxes(sandboxes[0]->owner->store, rows, events, alive, err);
}

int sandboxes_update_all(struct sandbox **sandboxes, size_t count,
                         const struct sandbox_update *request, struct arena *arena,
                         struct error *err)
{
    struct change *changes = arena_alloc(arena, (count + 1) * sizeof(*changes));
    bool *turns = arena_alloc(arena, (count + 1) * sizeof(*turns));
    int r = 0;
    size_t done = 0;
    memset(changes, 0, (count + 1) * sizeof(*changes));
    memset(turns, 0, (count + 1) * sizeof(*turns));
    while (r == 0 && done < count) {
        r = prepare_next(sandboxes[done], request, arena, &changes[done], &turns[done], err);
        done++;
    }
    if (r == 0)
        r = record_all(sandboxes, count, changes, request, arena, err);
    else
        for (size_t i = done; i-- > 0;)
            undo(sandboxes[i], &changes[i]);
    for (size_t i = 0; i < done; i++) {
        if (turns[i])
            end_turn(sandboxes[i]);
        change_release(&changes[i]);
    }
    return r;
}
