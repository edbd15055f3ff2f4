/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starting, stopping and ending all that is in a group. The end is one record, that of the group:
 * what it implies for each sandbox is done from it, now or after a crash, until none is left.
 */

#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "loop/co.h"
#include "sandbox/group_state.h"

enum { LOOK_AGAIN_MS = 1000 }; /* at sandboxes that could not be deleted */

/* --- the end --- */

/* Those that are not on their way already. Condemning one may wait, so each is looked for anew. */
static void condemn_all(struct group *group)
{
    for (unsigned left = group->member_count; left > 0; left--) {
        struct sandbox *sb = group->members;
        while (sb != NULL && sb->goal == GOAL_DELETED)
            sb = sb->group_next;
        if (sb == NULL)
            return;
        sandbox_condemn(sb, group->updated_by);
    }
}

/* Returns early when the server goes down: the record is there, and whoever comes next goes on. */
static void end_group(struct group *group)
{
    struct sandboxes *s = group->owner;
    struct error err;
    for (;;) {
        condemn_all(group);
        if (group->member_count == 0) {
            if (store_delete_group(s->store, group->id, &err) == 0)
                break;
            log_error("group %s: deleting its record: %s", group->id, err.message);
        }
        if (s->closing || (co_cond_wait(s->loop, &group->changed, LOOK_AGAIN_MS, &err) < 0 &&
                           err.code != ERROR_TIMEOUT))
            return;
    }
    group_remove(group);
}

static void driver(void *arg)
{
    struct group *group = arg;
    struct sandboxes *s = group->owner;
    end_group(group);
    group->driven = false;
    group_drop(group);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

void group_drive_end(struct group *group)
{
    struct error err;
    if (group->driven)
        return;
    group->driven = true;
    group_hold(group);
    group->owner->drivers++;
    if (co_spawn(group->owner->loop, driver, group, NULL, &err) < 0) {
        log_error("group %s: %s", group->id, err.message);
        group->driven = false;
        group->owner->drivers--;
        group_drop(group);
    }
}

void sandboxes_resume_groups(struct sandboxes *s)
{
    for (struct group *group = s->groups, *next; group != NULL; group = next) {
        next = group->by_name.next;
        if (group->ending)
            group_drive_end(group);
    }
}

int groups_end(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
               struct arena *arena, struct group_info *ret_info, struct error *err)
{
    _cleanup_group_ struct group *group = group_find_alive(s, workspace, name, err);
    if (group == NULL)
        return -1;
    group_hold(group);
    group->ending = true;
    group_touch(group, actor);
    if (group_save(group, err) < 0) {
        group->ending = false;
        return -1;
    }
    group_drive_end(group);
    group_info(group, arena, ret_info);
    return 0;
}

/* --- start and stop --- */

typedef int sandbox_change(struct sandboxes *s, const char *workspace, const char *name,
                           const char *actor, struct arena *arena, struct sandbox_info *ret_info,
                           struct error *err);

struct change {
    sandbox_change *forth, *back;
    unsigned from; /* statuses in which a sandbox is asked, as bits */
};

#define BIT(status) (1u << SANDBOX_##status)

static const struct change start = {sandboxes_start, sandboxes_stop,
                                    BIT(STOPPED) | BIT(FAILED) | BIT(STOPPING) | BIT(PAUSED) |
                                        BIT(PAUSING) | BIT(CREATING)};
static const struct change stop = {sandboxes_stop, sandboxes_start,
                                   BIT(RUNNING) | BIT(CREATING) | BIT(STARTING) | BIT(PAUSED) |
                                       BIT(PAUSING) | BIT(RESUMING)};

/* What those that are stopped would be promised besides their disks: so that none is started when
 * not all can be. */
static int check_promises(const struct group *group, struct error *err)
{
    struct spec_limits sum = {0};
    for (const struct sandbox *sb = group->members; sb != NULL; sb = sb->group_next)
        for (int i = 0; sb->promise.kind == PROMISE_DISK && i < RESOURCE_COUNT; i++)
            if (i != RESOURCE_DISK)
                sum.of[i] += sb->limits.of[i];
    /* each gets its part of it in a moment */
    struct promise together = {.tenant =
                                   group->members == NULL ? NULL : group->members->promise.tenant};
    if (pools_reserve(group->owner, &together, PROMISE_ALL, &sum, err) < 0)
        return -1;
    admission_release(&group->owner->admission, &together);
    return 0;
}

/* Each is asked by its id, since any of these calls may wait and see another one go. */
static int change_all(struct sandboxes *s, const struct change *change, const char *workspace,
                      const char *name, const char *actor, struct arena *arena,
                      struct group_info *ret_info, struct error *err)
{
    _cleanup_group_ struct group *group = group_find_alive(s, workspace, name, err);
    struct sandbox_info info;
    struct error ignored;
    struct group_info before;
    if (group == NULL)
        return -1;
    group_hold(group);
    if (change == &start && check_promises(group, err) < 0)
        return -1;
    group_info(group, arena, &before);
    bool *changed = arena_alloc(arena, before.member_count + 1);
    for (size_t i = 0; i < before.member_count; i++) {
        changed[i] =
            change->from & 1u << before.members[i].status &&
            change->forth(s, workspace, before.members[i].id, actor, arena, &info, &ignored) == 0;
        if (changed[i] || !(change->from & 1u << before.members[i].status))
            continue;
        if (ignored.code == ERROR_SANDBOX_NOT_FOUND || ignored.code == ERROR_ALREADY_RUNNING ||
            ignored.code == ERROR_NOT_RUNNING)
            continue; /* somebody else was there first */
        *err = ignored;
        while (i-- > 0)
            if (changed[i])
                change->back(s, workspace, before.members[i].id, actor, arena, &info, &ignored);
        return -1;
    }
    group_info(group, arena, ret_info);
    return 0;
}

int groups_start(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                 struct arena *arena, struct group_info *ret_info, struct error *err)
{
    return change_all(s, &start, workspace, name, actor, arena, ret_info, err);
}

int groups_stop(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                struct arena *arena, struct group_info *ret_info, struct error *err)
{
    return change_all(s, &stop, workspace, name, actor, arena, ret_info, err);
}
