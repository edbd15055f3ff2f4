/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sandboxes in memory: two maps (by id, by workspace and name), references, and copies for
 * callers. The store is written through from here, with a copy of the row, because the store's
 * thread reads it while this one goes on.
 */

#include "sandbox/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/timetext.h"
#include "sandbox/history_state.h"
#include "sandbox/metadata.h"

static const char *const status_texts[] = {
#define X(name, text) [SANDBOX_##name] = text,
    SANDBOX_STATUSES(X)
#undef X
};

const char *sandbox_status_text(enum sandbox_status status)
{
    return status_texts[status];
}

int sandbox_status_parse(const char *text, enum sandbox_status *ret_status, struct error *err)
{
    for (int i = 0; i < SANDBOX_STATUS_COUNT; i++)
        if (strcmp(status_texts[i], text) == 0) {
            *ret_status = i;
            return 0;
        }
    struct buf known = BUF_INIT(256);
    for (int i = 0; i < SANDBOX_STATUS_COUNT; i++)
        buf_addf(&known, "%s%s", i > 0 ? ", " : "", status_texts[i]);
    error_set(err, ERROR_INVALID_ARGUMENT, "status \"%.40s\" is none of %s", text, known.data);
    buf_release(&known);
    return -1;
}

static void sandbox_free(struct sandbox *sb)
{
    for (size_t i = 0; i < sb->event_count; i++)
        free(sb->events[i].message);
    free(sb->events);
    sandbox_free_notes(sb);
    free(sb->usage);
    free(sb->id);
    free(sb->workspace);
    free(sb->name);
    free(sb->key);
    free((char *)sb->image);
    resources_release(&sb->resources);
    free(sb->lower);
    free(sb->auto_lower);
    sandbox_history_free(sb->history);
    free(sb->history_rules);
    free(sb->history_said);
    sandbox_network_release(sb);
    free(sb->env);
    metadata_release(&sb->metadata);
    sandbox_forget_source(sb);
    if (sb->group != NULL)
        group_drop(sb->group);
    tenant_drop(&sb->owner->admission.tenants, sb->promise.tenant);
    free(sb);
}

static void copy_actor(char to[ACTOR_MAX], const char *from)
{
    size_t len = from == NULL ? 0 : strnlen(from, ACTOR_MAX - 1);
    memcpy(to, from == NULL ? "" : from, len);
    to[len] = '\0';
}

static int copy_strings(struct sandbox *sb, const struct store_sandbox *row)
{
    size_t key_size = strlen(row->workspace) + strlen(row->name) + 2;
    const char *slash = strchr(row->name, '/');
    sb->id = strdup(row->id);
    sb->workspace = strdup(row->workspace);
    sb->name = strdup(slash != NULL ? slash + 1 : row->name);
    sb->key = malloc(key_size);
    sb->image = strdup(row->image);
    sb->env = malloc(row->env.len + 1);
    sb->clone_of = row->clone_of == NULL ? NULL : strdup(row->clone_of);
    sb->owner->clones += sb->clone_of != NULL;
    struct sandbox_resources resources = {
        .cpu = row->cpu, .memory = row->memory, .disk = row->disk};
    resources_unpack(row->resources, &resources);
    struct sandbox_metadata metadata = {row->labels, row->external_id, row->display_name,
                                        row->blaxel_spec, row->e2b_spec};
    if (metadata_copy(&metadata, &sb->metadata) < 0 ||
        resources_copy(&resources, &sb->resources) < 0 ||
        (row->clone_of != NULL && sb->clone_of == NULL) || sb->id == NULL ||
        sb->workspace == NULL || sb->name == NULL || sb->key == NULL || sb->image == NULL ||
        sb->env == NULL)
        return -1;
    snprintf(sb->key, key_size, "%s/%s", row->workspace, row->name);
    if (row->env.len > 0)
        memcpy(sb->env, row->env.data, row->env.len);
    sb->env_len = row->env.len;
    return 0;
}

/* The group that a row's name tells of; the table has no sandbox without its group. */
static int enter_group(struct sandbox *sb, const struct store_sandbox *row, struct error *err)
{
    const char *slash = strchr(row->name, '/');
    if (slash == NULL)
        return 0;
    char name[NAME_MAX_LEN + 1];
    snprintf(name, sizeof(name), "%.*s", (int)(slash - row->name), row->name);
    struct group *group = group_find(sb->owner, row->workspace, name, err);
    if (group == NULL)
        return -1;
    group_hold(group);
    sb->group = group;
    return 0;
}

struct sandbox *sandbox_new(struct sandboxes *s, const struct store_sandbox *row, struct error *err)
{
    struct sandbox *sb = calloc(1, sizeof(*sb));
    if (sb != NULL)
        sb->owner = s;
    if (sb == NULL || copy_strings(sb, row) < 0) {
        error_sys(err, "allocating a sandbox");
        if (sb != NULL)
            sandbox_free(sb);
        return NULL;
    }
    sb->enabled = row->enabled;
    sb->revision = row->revision;
    sb->unsettled = row->unsettled;
    sb->restart.interrupted = row->interrupted;
    if (row->created_ms > s->last_created_ms)
        s->last_created_ms = row->created_ms;
    sb->created_ms = row->created_ms;
    sb->updated_ms = row->updated_ms;
    copy_actor(sb->created_by, row->created_by);
    copy_actor(sb->updated_by, row->updated_by);
    if (enter_group(sb, row, err) < 0 || sandbox_status_parse(row->status, &sb->status, err) < 0 ||
        restart_policy_parse(row->restart, &sb->restart.policy, err) < 0 ||
        trust_from_text(row->trust_level, row->security, &sb->security, err) < 0 ||
        sandbox_set_auto_lower(sb, row->auto_lower, err) < 0 ||
        history_set_rules(sb, row->history, err) < 0 ||
        sandbox_network_load(sb, row->network, err) < 0 ||
        spec_limits(&s->admission.machine, &sb->resources, &sb->limits, err) < 0) {
        sandbox_free(sb);
        return NULL;
    }
    if (sb->workspace[0] != '\0') /* a pool's model is in none */
        sb->promise.tenant = tenant_hold(&s->admission.tenants, sb->workspace);
    sb->refs = 1;
    return sb;
}

void sandbox_hold(struct sandbox *sb)
{
    sb->refs++;
}

void sandbox_drop(struct sandbox *sb)
{
    if (--sb->refs > 0)
        return;
    sandbox_agent_close(sb);
    sandbox_free(sb);
}

void sandboxes_set_quotas(struct sandboxes *s, quotas_of *quotas, const void *ctx)
{
    s->admission.tenants.quotas = quotas;
    s->admission.tenants.quotas_ctx = ctx;
}

uint64_t sandboxes_quota_used(const struct sandboxes *s, const char *workspace, enum quota kind)
{
    return tenant_used(&s->admission.tenants, workspace, kind);
}

int sandbox_insert(struct sandbox *sb, struct error *err)
{
    struct sandboxes *s = sb->owner;
    struct sandbox *other;
    HASH_FIND(by_name, s->names, sb->key, strlen(sb->key), other);
    if (other != NULL)
        return error_set(err, ERROR_ALREADY_EXISTS, "a sandbox named \"%s\" exists already",
                         sb->name);
    HASH_ADD_KEYPTR(by_id, s->ids, sb->id, strlen(sb->id), sb);
    HASH_ADD_KEYPTR(by_name, s->names, sb->key, strlen(sb->key), sb);
    group_join(sb);
    if (sb->promise.tenant != NULL)
        sb->promise.tenant->sandboxes++;
    sandbox_hold(sb);
    return 0;
}

void sandbox_remove(struct sandbox *sb)
{
    struct sandboxes *s = sb->owner;
    if (sb->gone)
        return;
    HASH_DELETE(by_id, s->ids, sb);
    HASH_DELETE(by_name, s->names, sb);
    group_leave(sb);
    if (sb->promise.tenant != NULL)
        sb->promise.tenant->sandboxes--;
    history_count(sb, 0);
    sb->gone = true;
    admission_release(&s->admission, &sb->promise);
    sandbox_life_forget(sb);
    restart_forget(sb);
    pools_abandon(sb);
    sandbox_forget_previews(sb);
    sandbox_forget_ports(sb);
    sandbox_forget_monitors(sb);
    co_cond_wake_all(&sb->changed);
    sandbox_drop(sb);
}

/* By its id, alone or with its group in front. */
static struct sandbox *find_id(struct sandboxes *s, const char *workspace, const char *name)
{
    const char *slash = strchr(name, '/'), *id = slash != NULL ? slash + 1 : name;
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    if (sb == NULL || strcmp(sb->workspace, workspace) != 0)
        return NULL;
    if (slash != NULL && (sb->group == NULL || strlen(sb->group->name) != (size_t)(slash - name) ||
                          strncmp(sb->group->name, name, (size_t)(slash - name)) != 0))
        return NULL;
    return sb;
}

struct sandbox *sandbox_find(struct sandboxes *s, const char *workspace, const char *name,
                             struct error *err)
{
    char key[NAME_MAX_LEN + 1 + SANDBOX_PATH_MAX + 1];
    struct sandbox *sb = NULL;
    if (strlen(workspace) <= NAME_MAX_LEN && strlen(name) <= SANDBOX_PATH_MAX) {
        int len = snprintf(key, sizeof(key), "%s/%s", workspace, name);
        HASH_FIND(by_name, s->names, key, (size_t)len, sb);
        if (sb == NULL)
            sb = find_id(s, workspace, name);
    }
    if (sb == NULL)
        error_set(err, ERROR_SANDBOX_NOT_FOUND, "there is no sandbox \"%.127s\"", name);
    return sb;
}

const char *sandbox_path(const struct sandbox *sb)
{
    return sb->key + strlen(sb->workspace) + 1;
}

enum sandbox_status sandbox_seen_status(const struct sandbox_info *info)
{
    return info->starts_on_use ? SANDBOX_RUNNING : info->status;
}

const char *sandbox_address(const struct sandbox_info *info, struct arena *arena)
{
    return info->group == NULL ? info->name : arena_printf(arena, "%s/%s", info->group, info->name);
}

struct sandbox *sandbox_find_external(struct sandboxes *s, const char *workspace,
                                      const char *external_id)
{
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next)
        if (sb->metadata.external_id != NULL && sb->status != SANDBOX_DELETING &&
            strcmp(sb->metadata.external_id, external_id) == 0 &&
            strcmp(sb->workspace, workspace) == 0)
            return sb;
    return NULL;
}

static const char *dup_or_null(struct arena *arena, const char *text)
{
    return text == NULL ? NULL : arena_strdup(arena, text);
}

static struct sandbox_metadata metadata_info(const struct sandbox_metadata *from,
                                             struct arena *arena)
{
    return (struct sandbox_metadata){
        .labels = {arena_dup(arena, from->labels.data, from->labels.len), from->labels.len},
        .external_id = dup_or_null(arena, from->external_id),
        .display_name = dup_or_null(arena, from->display_name),
        .blaxel_spec = dup_or_null(arena, from->blaxel_spec),
        .e2b_spec = dup_or_null(arena, from->e2b_spec),
    };
}

void sandbox_info(const struct sandbox *sb, struct arena *arena, struct sandbox_info *ret_info)
{
    struct sandbox_event *events = arena_alloc(arena, (sb->event_count + 1) * sizeof(*events));
    for (size_t i = 0; i < sb->event_count; i++)
        events[i] = (struct sandbox_event){
            .type = sb->events[i].type,
            .status = sb->events[i].status,
            .message = arena_strdup(arena, sb->events[i].message),
            .time_ms = sb->events[i].time_ms,
            .revision = sb->events[i].revision,
        };
    *ret_info = (struct sandbox_info){
        .id = arena_strdup(arena, sb->id),
        .workspace = arena_strdup(arena, sb->workspace),
        .name = arena_strdup(arena, sb->name),
        .group = sb->group == NULL ? NULL : arena_strdup(arena, sb->group->name),
        .image = arena_strdup(arena, sb->image),
        .resources = resources_arena(&sb->resources, arena),
        .limits = sb->limits,
        .load = sandbox_load(sb),
        .auto_lower = {arena_dup(arena, sb->auto_lower, sb->auto_lower_len), sb->auto_lower_len},
        .history = {arena_dup(arena, sb->history_said, sb->history_said_len), sb->history_said_len},
        .env = {arena_dup(arena, sb->env, sb->env_len), sb->env_len},
        .metadata = metadata_info(&sb->metadata, arena),
        .security = sb->security,
        .network = {arena_dup(arena, sb->network.packed, sb->network.packed_len),
                    sb->network.packed_len},
        .enabled = sb->enabled,
        .restart = sb->restart.policy,
        .starts_on_use = sandbox_starts_on_use(sb),
        .status = sb->status,
        .revision = sb->revision,
        .created_ms = sb->created_ms,
        .updated_ms = sb->updated_ms,
        .created_by = arena_strdup(arena, sb->created_by),
        .updated_by = arena_strdup(arena, sb->updated_by),
        .events = events,
        .event_count = sb->event_count,
    };
    sandbox_life_info(sb, ret_info);
}

/* Event types and statuses are few and fixed; a stored one that is none of them is shown as OTHER.
 */
static const char *event_word(const char *text)
{
    static const char *const words[] = {"CREATE", "START",  "STOP",    "DELETE",
                                        "CLONE",  "PAUSE",  "RESUME",  "UPDATE",
                                        "RESIZE", "EXPIRE", "SUCCESS", "FAILURE"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i], text) == 0)
            return words[i];
    return "OTHER";
}

static void push_event(struct sandbox *sb, struct event_record record)
{
    if (sb->event_count == EVENTS_KEPT_MAX) {
        free(sb->events[0].message);
        memmove(sb->events, sb->events + 1, (sb->event_count - 1) * sizeof(*sb->events));
        sb->event_count--;
    }
    struct event_record *events = realloc(sb->events, (sb->event_count + 1) * sizeof(*sb->events));
    if (events == NULL || record.message == NULL)
        abort(); /* a few hundred bytes: nothing sensible can go on */
    sb->events = events;
    sb->events[sb->event_count++] = record;
}

void sandbox_add_event(struct sandbox *sb, const char *type, const char *status,
                       const char *message)
{
    sandbox_touch(sb);
    push_event(sb, (struct event_record){
                       .type = type,
                       .status = status,
                       .message = strdup(message),
                       .time_ms = sb->updated_ms,
                       .revision = sb->revision,
                   });
}

void sandbox_load_event(struct sandbox *sb, const struct store_event *event)
{
    push_event(sb, (struct event_record){
                       .type = event_word(event->type),
                       .status = event_word(event->status),
                       .message = strdup(event->message),
                       .time_ms = event->time_ms,
                       .revision = event->revision,
                   });
}

void sandbox_touch(struct sandbox *sb)
{
    sb->updated_ms = time_now_ms();
    sb->revision = ++sb->owner->revision;
}

void sandbox_set_status(struct sandbox *sb, enum sandbox_status status)
{
    if (sb->status == status)
        return;
    sb->status = status;
    if (status == SANDBOX_STOPPED || status == SANDBOX_FAILED)
        admission_shrink(&sb->owner->admission, &sb->promise);
    sandbox_touch(sb);
    sandbox_life_changed(sb);
    co_cond_wake_all(&sb->changed);
}

void sandbox_row(const struct sandbox *sb, struct arena *arena, struct store_sandbox *ret_row,
                 struct store_event *ret_event)
{
    struct sandbox_info info;
    sandbox_info(sb, arena, &info);
    *ret_row = (struct store_sandbox){
        .id = info.id,
        .workspace = info.workspace,
        .name = arena_strdup(arena, sandbox_path(sb)),
        .status = sandbox_status_text(info.status),
        .image = info.image,
        .cpu = info.resources.cpu,
        .memory = info.resources.memory,
        .disk = info.resources.disk,
        .resources = resources_pack(&info.resources, arena),
        .auto_lower = info.auto_lower,
        .history = info.history,
        .env = info.env,
        .enabled = info.enabled,
        .created_ms = info.created_ms,
        .updated_ms = info.updated_ms,
        .created_by = info.created_by,
        .updated_by = info.updated_by,
        .labels = info.metadata.labels,
        .external_id = info.metadata.external_id,
        .display_name = info.metadata.display_name,
        .blaxel_spec = info.metadata.blaxel_spec,
        .e2b_spec = info.metadata.e2b_spec,
        .revision = info.revision,
        .clone_of = dup_or_null(arena, sb->clone_of),
        .unsettled = sb->unsettled,
        .restart = restart_policy_text(info.restart),
        .interrupted = sb->restart.interrupted,
        .trust_level = trust_level_text(info.security.level),
        .security = trust_text(&info.security, arena),
        .lifespan = sandbox_life_row(sb, arena),
        .network = info.network,
    };
    if (info.event_count > 0) {
        const struct sandbox_event *last = &info.events[info.event_count - 1];
        *ret_event = (struct store_event){last->type, last->status, last->message, last->time_ms,
                                          last->revision};
    }
}

int sandbox_save(struct sandbox *sb, bool with_event, struct error *err)
{
    struct store_sandbox row;
    struct store_event event = {NULL};
    struct arena *arena = arena_new();
    sandbox_row(sb, arena, &row, &event);
    sb->life.stored_active_ms = sb->life.active_ms;
    int rc = store_put_sandbox(sb->owner->store, &row, with_event ? &event : NULL, err);
    arena_free(arena);
    return rc;
}
