/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting for what a driver is about: for callers whose protocol has no "creating". */

#include "sandbox/sandbox.h"

#include "base/cleanup.h"
#include "loop/co.h"
#include "sandbox/state.h"

enum { SETTLES_MS = 120 * 1000 };

bool sandbox_comes_up(const struct sandbox *sb)
{
    return sb->status == SANDBOX_CREATING || sb->status == SANDBOX_STARTING ||
           sb->status == SANDBOX_RESUMING;
}

bool sandbox_comes_down(const struct sandbox *sb)
{
    return sb->status == SANDBOX_STOPPING || sb->status == SANDBOX_PAUSING;
}

static int wait_while(struct sandboxes *s, const char *workspace, const char *name,
                      bool (*under_way)(const struct sandbox *sb), struct arena *arena,
                      struct sandbox_info *ret_info, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    sandbox_hold(sb);
    while (under_way(sb) && !sb->gone)
        if (co_cond_wait(s->loop, &sb->changed, SETTLES_MS, err) < 0)
            return -1;
    if (sb->gone)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "there is no sandbox \"%s\"",
                         sandbox_path(sb));
    sandbox_info(sb, arena, ret_info);
    return 0;
}

int sandboxes_settle(struct sandboxes *s, const char *workspace, const char *name,
                     struct arena *arena, struct sandbox_info *ret_info, struct error *err)
{
    return wait_while(s, workspace, name, sandbox_comes_up, arena, ret_info, err);
}

int sandboxes_rest(struct sandboxes *s, const char *workspace, const char *name,
                   struct arena *arena, struct sandbox_info *ret_info, struct error *err)
{
    return wait_while(s, workspace, name, sandbox_comes_down, arena, ret_info, err);
}
