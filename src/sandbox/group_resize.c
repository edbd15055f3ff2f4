/* SPDX-License-Identifier: Apache-2.0 */

/*
 * New limits for all of a group, or for none. Each sandbox is updated as one alone would be, which
 * may wait and be refused: then those before it get back what they had.
 */

#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "sandbox/group_state.h"
#include "sandbox/resources.h"

/* A sandbox and what it had. */
struct done {
    struct sandbox_info before;
    bool changed;
};

static void give_back(struct sandboxes *s, const struct sandbox_update *change, struct done *done,
                      size_t count, struct arena *arena)
{
    struct sandbox_info info;
    struct error err;
    while (count-- > 0) {
        struct sandbox_update update = {
            .workspace = change->workspace,
            .name = done[count].before.id,
            .actor = change->actor,
            .resources = done[count].before.resources,
            .auto_lower = change->auto_lower == NULL ? NULL : &done[count].before.auto_lower,
            .security.may_loosen = true, /* it had this before */
            .resized = "Sandbox has its limits back: its group could not be resized",
        };
        if (done[count].changed && sandboxes_update(s, &update, arena, &info, &err) < 0)
            log_error("sandbox %s: giving its limits back: %s", update.name, err.message);
    }
}

/* One that goes meanwhile is none of the group any more. */
static int resize_one(struct sandboxes *s, const struct sandbox_update *change, struct done *done,
                      struct arena *arena, struct error *err)
{
    struct sandbox_update update = *change;
    struct sandbox_info info;
    struct error why;
    update.name = done->before.id;
    if (sandboxes_update(s, &update, arena, &info, &why) == 0) {
        done->changed = true;
        return 0;
    }
    if (why.code == ERROR_SANDBOX_NOT_FOUND)
        return 0;
    *err = why;
    return error_prefix(err, "sandbox \"%s\"", done->before.name);
}

static size_t remember(const struct group *group, struct done *done, struct arena *arena)
{
    size_t count = 0;
    for (const struct sandbox *sb = group->members; sb != NULL; sb = sb->group_next)
        if (sb->status != SANDBOX_DELETING)
            sandbox_info(sb, arena, &done[count++].before);
    return count;
}

int groups_resize(struct sandboxes *s, const char *name, const struct sandbox_update *change,
                  struct arena *arena, struct group_info *ret_info, struct error *err)
{
    _cleanup_group_ struct group *group = group_find_alive(s, change->workspace, name, err);
    if (group == NULL)
        return -1;
    group_hold(group);
    struct done *done = arena_alloc(arena, (group->member_count + 1) * sizeof(*done));
    size_t count = remember(group, done, arena);
    for (size_t i = 0; i < count; i++)
        if (resize_one(s, change, &done[i], arena, err) < 0) {
            give_back(s, change, done, i, arena);
            return -1;
        }
    group_info(group, arena, ret_info);
    return 0;
}
