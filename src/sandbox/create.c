/* SPDX-License-Identifier: Apache-2.0 */

/* New sandboxes: what is asked for is checked, given a name and an id, and recorded; making it is
 * the driver's business (lifecycle.c). */

#include "sandbox/create.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"
#include "image/image.h"
#include "loop/co.h"
#include "observe/meters.h"
#include "sandbox/history_rules.h"
#include "sandbox/metadata.h"
#include "sandbox/witness.h"

enum { NAME_TRIES = 20, DELETE_WAIT_MS = 30 * 1000 };

const struct first_event sandbox_created = {"CREATE", "Sandbox created successfully"};

/* "group/name", or "name". */
static void make_path(const struct group *group, const char *name, char path[SANDBOX_PATH_MAX + 1])
{
    snprintf(path, SANDBOX_PATH_MAX + 1, "%s%s%s", group == NULL ? "" : group->name,
             group == NULL ? "" : "/", name);
}

static void pick_path(struct sandboxes *s, const char *workspace, const struct group *group,
                      char path[SANDBOX_PATH_MAX + 1])
{
    char name[NAME_MAX_LEN + 1];
    for (int i = 0; i < NAME_TRIES; i++) {
        random_name(name);
        make_path(group, name, path);
        if (sandbox_find(s, workspace, path, NULL) == NULL)
            return;
    }
    random_id(name, 24);
    make_path(group, name, path);
}

/* The name of a sandbox that is being deleted is free in a moment: wait for it. */
static int wait_for_name(struct sandboxes *s, const char *workspace, const char *name,
                         struct error *err)
{
    for (;;) {
        _cleanup_sandbox_ struct sandbox *sb = sandbox_find(s, workspace, name, NULL);
        if (sb == NULL)
            return 0;
        sandbox_hold(sb);
        if (sb->status != SANDBOX_DELETING)
            return error_set(err, ERROR_ALREADY_EXISTS, "a sandbox named \"%s\" exists already",
                             name);
        if (co_cond_wait(s->loop, &sb->changed, DELETE_WAIT_MS, err) < 0)
            return -1;
    }
}

int sandbox_check_external(struct sandboxes *s, const char *workspace, const char *external_id,
                           const struct sandbox *own, struct error *err)
{
    if (external_id == NULL || external_id[0] == '\0')
        return 0;
    const struct sandbox *other = sandbox_find_external(s, workspace, external_id);
    if (other == NULL || other == own)
        return 0;
    return error_set(err, ERROR_ALREADY_EXISTS, "sandbox \"%s\" has the externalId \"%s\" already",
                     other->name, external_id);
}

/* Two sandboxes never have the same time of birth, so that their order, and a place in it, can be
 * named by it; not even when the clock is set back. */
static int64_t birth_time(const struct sandboxes *s)
{
    int64_t now = time_now_ms();
    return now > s->last_created_ms ? now : s->last_created_ms + 1;
}

static enum sandbox_status first_status(const struct store_sandbox *row)
{
    return row->enabled || row->clone_of != NULL ? SANDBOX_CREATING : SANDBOX_STOPPED;
}

static int check_room(const struct group *group, struct error *err)
{
    if (group == NULL)
        return 0;
    if (group->ending || group->gone)
        return error_set(err, ERROR_GROUP_NOT_FOUND, "the group \"%s\" is ending", group->name);
    if (group->member_count >= GROUP_SANDBOXES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "the group \"%s\" has %d sandboxes already",
                         group->name, GROUP_SANDBOXES_MAX);
    return 0;
}

/* Nothing waits from the first check to the end. */
static struct sandbox *insert(struct sandboxes *s, const struct group *group,
                              struct store_sandbox *row, struct error *err)
{
    if (check_room(group, err) < 0 ||
        (row->clone_of != NULL && sandbox_check_source(s, row->clone_of, err) < 0) ||
        sandbox_check_external(s, row->workspace, row->external_id, NULL, err) < 0)
        return NULL;
    row->created_ms = row->updated_ms = birth_time(s);
    row->status = sandbox_status_text(first_status(row));
    struct lifespan rules = {0};
    if (row->lifespan != NULL && sandbox_lifespan_of(row->lifespan, &rules, err) < 0)
        return NULL;
    struct sandbox *sb = sandbox_new(s, row, err);
    if (sb == NULL)
        return NULL;
    capacity_keep_fresh(s);
    if (tenant_check(&s->admission.tenants, sb->promise.tenant, QUOTA_SANDBOXES, 1, err) < 0 ||
        admission_check_single(&s->admission, NULL, &sb->limits, err) < 0) {
        sandbox_drop(sb);
        return NULL;
    }
    struct spare *spare = row->enabled && row->clone_of == NULL ? pools_take(sb) : NULL;
    enum promise_kind kind = row->enabled ? PROMISE_ALL : PROMISE_DISK;
    bool admitted =
        pools_reserve(s, &sb->promise, kind, &sb->limits, err) == 0 && sandbox_insert(sb, err) == 0;
    pools_settle(sb, spare, admitted);
    if (!admitted) {
        admission_release(&s->admission, &sb->promise);
        sandbox_drop(sb);
        return NULL;
    }
    sandbox_set_lifespan(sb, &rules, true);
    return sb;
}

struct sandbox *sandbox_admit(struct sandboxes *s, struct group *group, struct store_sandbox *row,
                              const struct first_event *event, struct error *err)
{
    char id[SANDBOX_ID_LEN + 1];
    char path[SANDBOX_PATH_MAX + 1];
    if (row->name == NULL)
        pick_path(s, row->workspace, group, path);
    else
        make_path(group, row->name, path);
    random_id(id, SANDBOX_ID_LEN);
    struct store_sandbox whole = *row;
    whole.id = id;
    whole.name = path;
    struct sandbox *sb = insert(s, group, &whole, err);
    if (sb == NULL)
        return NULL;
    sb->goal = row->enabled ? GOAL_RUNNING : GOAL_STOPPED;
    witness_made(sb);
    sandbox_add_event(sb, event->type, "SUCCESS", event->message);
    return sb;
}

void sandbox_launch(struct sandbox *sb)
{
    if (sb->status != SANDBOX_CREATING)
        return;
    sb->asked_ns = meter_now();
    sandbox_drive(sb);
}

/* Waits for the name to be free. The group may end meanwhile. */
static int wait_for_place(struct sandboxes *s, struct group *group, const struct store_sandbox *row,
                          struct error *err)
{
    char path[SANDBOX_PATH_MAX + 1];
    make_path(group, row->name, path);
    if (group == NULL)
        return wait_for_name(s, row->workspace, path, err);
    group_hold(group);
    int rc = wait_for_name(s, row->workspace, path, err) < 0 || check_room(group, err) < 0 ? -1 : 0;
    group_drop(group);
    return rc;
}

/* The group that it is to be in, and the name that it is to have there, are free for it. */
static int find_place(struct sandboxes *s, const char *group_name, const struct store_sandbox *row,
                      struct group **ret_group, struct error *err)
{
    struct group *group = NULL;
    if (group_name != NULL) {
        group = group_find(s, row->workspace, group_name, err);
        if (group == NULL || check_room(group, err) < 0)
            return -1;
    }
    if (row->name != NULL &&
        (name_check(row->name, err) < 0 || wait_for_place(s, group, row, err) < 0))
        return -1;
    *ret_group = group;
    return 0;
}

int sandbox_add(struct sandboxes *s, const char *group_name, struct store_sandbox *row,
                const struct first_event *event, struct arena *arena, struct sandbox_info *ret_info,
                struct error *err)
{
    struct group *group = NULL;
    if (s->closing)
        return error_set(err, ERROR_UNAVAILABLE, "the server is shutting down");
    if (find_place(s, group_name, row, &group, err) < 0)
        return -1;
    _cleanup_sandbox_ struct sandbox *sb = sandbox_admit(s, group, row, event, err);
    if (sb == NULL)
        return -1;
    sandbox_info(sb, arena, ret_info);

    /* It is made while it is being recorded. Should the record fail, or this process die before it
     * is there, nobody was told of the sandbox and it is removed again. */
    sandbox_launch(sb);
    if (sandbox_save(sb, true, err) < 0) {
        sb->goal = GOAL_DELETED;
        sandbox_drive(sb);
        return -1;
    }
    return 0;
}

int sandbox_new_lifespan(const struct lifespan *before, const struct lifespan_change *change,
                         struct store_lifespan *ret_row, struct error *err)
{
    struct lifespan rules;
    if (lifespan_merge(before, change, 0, time_now_ms(), true, &rules, err) < 0)
        return -1;
    *ret_row = (struct store_lifespan){
        .ttl_s = rules.ttl_s,
        .idle_s = rules.idle_s,
        .max_age_s = rules.max_age_s,
        .expires_ms = rules.expires_ms,
        .on_expire = lifespan_action_text(rules.on_expire),
        .wake = rules.wake,
    };
    return 0;
}

static int check_request(struct sandboxes *s, const struct sandbox_create *request,
                         struct arena *arena, struct sandbox_resources *resources,
                         struct trust_options *ret_security, struct slice *ret_network,
                         struct error *err)
{
    const char *image;
    struct spec_limits limits;
    if ((request->name != NULL && name_check(request->name, err) < 0) ||
        image_resolve(request->image, &image, err) < 0 ||
        trust_resolve(&request->security, NULL, ret_security, err) < 0 ||
        network_resolve(s, request->workspace, &request->security, &request->network, NULL,
                        ret_security, arena, ret_network, err) < 0)
        return -1;
    if (resources->memory == NULL)
        resources->memory = spec_at_most(&s->admission.machine, RESOURCE_MEMORY,
                                         trust_memory(ret_security, arena), arena);
    if (resources->cpu == NULL)
        resources->cpu = spec_at_most(&s->admission.machine, RESOURCE_CPU,
                                      trust_cpu(ret_security, arena), arena);
    spec_defaults(&s->admission.machine, resources, arena);
    if (spec_limits(&s->admission.machine, resources, &limits, err) < 0 ||
        trust_check_limits(&request->security, limits.memory_bytes, limits.cpu_millis, ret_security,
                           err) < 0)
        return -1;
    spec_settle(resources, &limits, arena);
    struct auto_lower lower;
    if ((request->auto_lower.len > 0 && auto_lower_parse(request->auto_lower, &lower, err) < 0) ||
        history_rules_check(request->history, err) < 0)
        return -1;
    return spec_check_env(request->env, err) < 0 ? -1 : metadata_check(&request->metadata, err);
}

int sandbox_create_row(struct sandboxes *s, const struct sandbox_create *request,
                       struct arena *arena, struct store_sandbox *ret_row, struct error *err)
{
    struct sandbox_resources resources = request->resources;
    struct trust_options security;
    struct slice network;
    const struct lifespan_change asked = {.sets = LIFESPAN_SETS_ALL, .to = request->lifespan};
    struct store_lifespan *lifespan = arena_alloc(arena, sizeof(*lifespan));
    if (check_request(s, request, arena, &resources, &security, &network, err) < 0 ||
        sandbox_new_lifespan(&(struct lifespan){0}, &asked, lifespan, err) < 0)
        return -1;
    *ret_row = (struct store_sandbox){
        .workspace = request->workspace,
        .name = request->name,
        .image = request->image == NULL || request->image[0] == '\0' ? "host" : request->image,
        .cpu = resources.cpu,
        .memory = resources.memory,
        .disk = resources.disk,
        .resources = resources_pack(&resources, arena),
        .auto_lower = request->auto_lower,
        .history = request->history,
        .env = request->env,
        .enabled = request->enabled,
        .restart = restart_policy_text(request->restart),
        .created_by = request->actor,
        .updated_by = request->actor,
        .labels = request->metadata.labels,
        .external_id = request->metadata.external_id,
        .display_name = request->metadata.display_name,
        .blaxel_spec = request->metadata.blaxel_spec,
        .e2b_spec = request->metadata.e2b_spec,
        .trust_level = trust_level_text(security.level),
        .security = trust_text(&security, arena),
        .lifespan = lifespan,
        .network = network,
    };
    return 0;
}

int sandboxes_create(struct sandboxes *s, const struct sandbox_create *request, struct arena *arena,
                     struct sandbox_info *ret_info, struct error *err)
{
    struct store_sandbox row;
    if (sandbox_create_row(s, request, arena, &row, err) < 0)
        return -1;
    return sandbox_add(s, request->group, &row, &sandbox_created, arena, ret_info, err);
}
