/* SPDX-License-Identifier: Apache-2.0 */

/*
 * New limits for all of a group, or for none: sandboxes_update_all() sees to it, whoever is refused
 * or killed meanwhile, and a caller who leaves does not stop it. One at a time, since each waits
 * for the turns of all its sandboxes.
 */

#include "base/cleanup.h"
#include "loop/co.h"
#include "loop/task.h"
#include "sandbox/group_state.h"

enum { WAIT_MS = 120 * 1000 };

struct work {
    struct sandbox **sandboxes;
    size_t count;
    const struct sandbox_update *change;
    struct arena *arena;
    struct error *err;
    int r;
};

static void update_main(void *arg)
{
    struct work *work = arg;
    work->r =
        sandboxes_update_all(work->sandboxes, work->count, work->change, work->arena, work->err);
}

static size_t hold_members(const struct group *group, struct sandbox **sandboxes)
{
    size_t count = 0;
    for (struct sandbox *sb = group->members; sb != NULL; sb = sb->group_next)
        if (sb->status != SANDBOX_DELETING) {
            sandbox_hold(sb);
            sandboxes[count++] = sb;
        }
    return count;
}

int groups_resize(struct sandboxes *s, const char *name, const struct sandbox_update *change,
                  struct arena *arena, struct group_info *ret_info, struct error *err)
{
    _cleanup_group_ struct group *group = group_find_alive(s, change->workspace, name, err);
    if (group == NULL)
        return -1;
    group_hold(group);
    while (group->resizing)
        if (co_cond_wait(s->loop, &group->changed, WAIT_MS, err) < 0)
            return -1;
    if (group->ending || group->gone)
        return error_set(err, ERROR_GROUP_NOT_FOUND, "the group \"%s\" is ending", group->name);
    group->resizing = true;
    struct sandbox **sandboxes = arena_alloc(arena, (group->member_count + 1) * sizeof(*sandboxes));
    struct work work = {sandboxes, hold_members(group, sandboxes), change, arena, err, -1};
    struct task task;
    if (task_start(s->loop, &task, update_main, &work, err) == 0)
        task_join(&task);
    for (size_t i = 0; i < work.count; i++)
        sandbox_drop(sandboxes[i]);
    group->resizing = false;
    co_cond_wake_all(&group->changed);
    if (work.r == 0)
        group_info(group, arena, ret_info);
    return work.r;
}
