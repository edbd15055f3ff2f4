/* SPDX-License-Identifier: Apache-2.0 */

/* The groups in memory: one map, who is in which, and copies for callers. Nothing here waits but
 * for the store. */

#include "sandbox/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/timetext.h"
#include "sandbox/group_state.h"

static const char *const status_texts[] = {
#define X(name, text) [GROUP_##name] = text,
    GROUP_STATUSES(X)
#undef X
};

const char *group_status_text(enum group_status status)
{
    return status_texts[status];
}

/* --- the map --- */

static void group_free(struct group *group)
{
    free(group->id);
    free(group->workspace);
    free(group->name);
    free(group->key);
    free(group->spec);
    free(group);
}

struct group *group_new(struct sandboxes *s, const struct store_group *row, struct error *err)
{
    struct group *group = calloc(1, sizeof(*group));
    size_t key_size = strlen(row->workspace) + strlen(row->name) + 2;
    if (group == NULL || (group->id = strdup(row->id)) == NULL ||
        (group->workspace = strdup(row->workspace)) == NULL ||
        (group->name = strdup(row->name)) == NULL || (group->spec = strdup(row->spec)) == NULL ||
        (group->key = malloc(key_size)) == NULL) {
        error_sys(err, "allocating a group");
        if (group != NULL)
            group_free(group);
        return NULL;
    }
    snprintf(group->key, key_size, "%s/%s", row->workspace, row->name);
    group->owner = s;
    group->ending = row->ending;
    group->created_ms = row->created_ms;
    group->updated_ms = row->updated_ms;
    snprintf(group->created_by, sizeof(group->created_by), "%s", row->created_by);
    snprintf(group->updated_by, sizeof(group->updated_by), "%s", row->updated_by);
    group->refs = 1; /* the map's */
    HASH_ADD_KEYPTR(by_name, s->groups, group->key, strlen(group->key), group);
    return group;
}

void group_hold(struct group *group)
{
    group->refs++;
}

void group_drop(struct group *group)
{
    if (--group->refs == 0)
        group_free(group);
}

void group_remove(struct group *group)
{
    if (group->gone)
        return;
    HASH_DELETE(by_name, group->owner->groups, group);
    group->gone = true;
    co_cond_wake_all(&group->changed);
    group_drop(group);
}

struct group *group_find(struct sandboxes *s, const char *workspace, const char *name,
                         struct error *err)
{
    char key[2 * NAME_MAX_LEN + 2];
    struct group *group = NULL;
    if (strlen(workspace) <= NAME_MAX_LEN && strlen(name) <= NAME_MAX_LEN) {
        int len = snprintf(key, sizeof(key), "%s/%s", workspace, name);
        HASH_FIND(by_name, s->groups, key, (size_t)len, group);
    }
    for (struct group *g = group == NULL ? s->groups : NULL; g != NULL; g = g->by_name.next)
        if (strcmp(g->id, name) == 0 && strcmp(g->workspace, workspace) == 0)
            return g;
    if (group == NULL)
        error_set(err, ERROR_GROUP_NOT_FOUND, "there is no group \"%.63s\"", name);
    return group;
}

void group_join(struct sandbox *sb)
{
    struct group *group = sb->group;
    if (group == NULL)
        return;
    DL_APPEND2(group->members, sb, group_prev, group_next);
    group->member_count++;
    co_cond_wake_all(&group->changed);
}

void group_leave(struct sandbox *sb)
{
    struct group *group = sb->group;
    if (group == NULL)
        return;
    DL_DELETE2(group->members, sb, group_prev, group_next);
    group->member_count--;
    co_cond_wake_all(&group->changed);
}

/* --- to and from the store --- */

static int load_group(void *ctx, const struct store_group *row, struct error *err)
{
    return group_new(ctx, row, err) == NULL ? -1 : 0;
}

int sandboxes_load_groups(struct sandboxes *s, struct error *err)
{
    return store_load_groups(s->store, load_group, s, err);
}

void sandboxes_free_groups(struct sandboxes *s)
{
    while (s->groups != NULL)
        group_remove(s->groups);
}

void group_row(const struct group *group, struct arena *arena, struct store_group *ret_row)
{
    *ret_row = (struct store_group){
        .id = arena_strdup(arena, group->id),
        .workspace = arena_strdup(arena, group->workspace),
        .name = arena_strdup(arena, group->name),
        .spec = arena_strdup(arena, group->spec),
        .ending = group->ending,
        .created_ms = group->created_ms,
        .updated_ms = group->updated_ms,
        .created_by = arena_strdup(arena, group->created_by),
        .updated_by = arena_strdup(arena, group->updated_by),
    };
}

int group_save(const struct group *group, struct error *err)
{
    struct store_group row;
    struct arena *arena = arena_new();
    group_row(group, arena, &row);
    int rc = store_put_group(group->owner->store, &row, err);
    arena_free(arena);
    return rc;
}

void group_touch(struct group *group, const char *actor)
{
    group->updated_ms = time_now_ms();
    snprintf(group->updated_by, sizeof(group->updated_by), "%s", actor);
}

/* --- for callers --- */

/* One of these settles it, the first before the others; a sandbox that goes does not count. */
static const struct {
    enum sandbox_status one;
    enum group_status all;
} one_tells[] = {
    {SANDBOX_FAILED, GROUP_FAILED},     {SANDBOX_CREATING, GROUP_CREATING},
    {SANDBOX_STARTING, GROUP_STARTING}, {SANDBOX_RESUMING, GROUP_STARTING},
    {SANDBOX_STOPPING, GROUP_STOPPING}, {SANDBOX_PAUSING, GROUP_STOPPING},
};

static enum group_status status_of(const struct group *group)
{
    size_t counts[SANDBOX_STATUS_COUNT] = {0};
    for (const struct sandbox *sb = group->members; sb != NULL; sb = sb->group_next)
        counts[sb->status]++;
    if (group->ending)
        return GROUP_ENDING;
    if (group->member_count == counts[SANDBOX_DELETING])
        return GROUP_EMPTY;
    for (size_t i = 0; i < ARRAY_LEN(one_tells); i++)
        if (counts[one_tells[i].one] > 0)
            return one_tells[i].all;
    if (counts[SANDBOX_STOPPED] + counts[SANDBOX_PAUSED] == 0)
        return GROUP_RUNNING;
    return counts[SANDBOX_RUNNING] == 0 ? GROUP_STOPPED : GROUP_MIXED;
}

void group_info(const struct group *group, struct arena *arena, struct group_info *ret_info)
{
    struct group_member *members = arena_alloc(arena, (group->member_count + 1) * sizeof(*members));
    size_t count = 0;
    for (const struct sandbox *sb = group->members; sb != NULL; sb = sb->group_next)
        members[count++] = (struct group_member){
            .id = arena_strdup(arena, sb->id),
            .name = arena_strdup(arena, sb->name),
            .status = sb->status,
        };
    *ret_info = (struct group_info){
        .id = arena_strdup(arena, group->id),
        .workspace = arena_strdup(arena, group->workspace),
        .name = arena_strdup(arena, group->name),
        .spec = arena_strdup(arena, group->spec),
        .status = status_of(group),
        .created_ms = group->created_ms,
        .updated_ms = group->updated_ms,
        .created_by = arena_strdup(arena, group->created_by),
        .updated_by = arena_strdup(arena, group->updated_by),
        .members = members,
        .member_count = count,
    };
}

int groups_get(struct sandboxes *s, const char *workspace, const char *name, struct arena *arena,
               struct group_info *ret_info, struct error *err)
{
    const struct group *group = group_find(s, workspace, name, err);
    if (group == NULL)
        return -1;
    group_info(group, arena, ret_info);
    return 0;
}

int groups_list(struct sandboxes *s, const char *workspace, size_t limit, size_t offset,
                struct arena *arena, struct group_info **ret_items, size_t *ret_count,
                size_t *ret_total, struct error *err)
{
    size_t all = HASH_CNT(by_name, s->groups), most = all < limit ? all : limit;
    struct group_info *items = arena_alloc(arena, (most + 1) * sizeof(*items));
    size_t total = 0, count = 0;
    for (const struct group *group = s->groups; group != NULL; group = group->by_name.next)
        if (strcmp(group->workspace, workspace) == 0 && total++ >= offset && count < most)
            group_info(group, arena, &items[count++]);
    *ret_items = items;
    *ret_count = count;
    *ret_total = total;
    return 0;
}

struct group *group_find_alive(struct sandboxes *s, const char *workspace, const char *name,
                               struct error *err)
{
    struct group *group = group_find(s, workspace, name, err);
    if (group != NULL && group->ending) {
        error_set(err, ERROR_GROUP_NOT_FOUND, "the group \"%s\" is ending", group->name);
        return NULL;
    }
    return group;
}

int groups_set_spec(struct sandboxes *s, const char *name, const struct group_create *request,
                    struct arena *arena, struct group_info *ret_info, struct error *err)
{
    if (group_check_spec(s, request, arena, err) < 0)
        return -1;
    _cleanup_group_ struct group *group = group_find_alive(s, request->workspace, name, err);
    if (group == NULL)
        return -1;
    group_hold(group);
    char *copy = strdup(request->spec);
    if (copy == NULL)
        return error_sys(err, "changing a group");
    free(group->spec);
    group->spec = copy;
    group_touch(group, request->actor);
    if (group_save(group, err) < 0)
        return -1;
    group_info(group, arena, ret_info);
    return 0;
}
