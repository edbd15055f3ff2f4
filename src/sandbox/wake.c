/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waking a sandbox that is stopped, for those who connect to a port of it, or come to work in it by
 * E2B's way in. That is its owner's choice (spec.lifecycle.wakeOnConnect), because a stranger can
 * do it who knows a public address.
 * One that is switched off (enabled: false) or has failed stays as it is: the one on purpose, the
 * other because it would fail again with every connection.
 */

#include "base/cleanup.h"
#include "sandbox/state.h"

bool sandbox_wakes(const struct sandbox *sb)
{
    return sb->life.rules.wake && sb->enabled;
}

static bool is_down(const struct sandbox *sb)
{
    return sb->status == SANDBOX_STOPPED || sb->status == SANDBOX_STOPPING;
}

static int stays(const struct sandbox *sb, struct error *err)
{
    return error_set(err, ERROR_NOT_RUNNING, "sandbox \"%s\" is %s", sandbox_path(sb),
                     sandbox_status_text(sb->status));
}

static int resume(struct sandbox *sb, struct arena *arena, struct sandbox_info *ret_info,
                  struct error *err)
{
    int rc = sandboxes_resume(sb->owner, sb->workspace, sb->id, "cella", arena, ret_info, err);
    /* How much there is on this machine is not for whoever connects. */
    if (rc < 0 && err->code == ERROR_INSUFFICIENT_RESOURCES)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the sandbox is stopped, and there is no room to start it right now");
    return rc;
}

int sandbox_wake(struct sandboxes *s, const char *workspace, const char *name, uint16_t port,
                 struct error *err)
{
    struct sandbox_info info;
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    if (!sandbox_wakes(sb) || !is_down(sb))
        return stays(sb, err);
    sandbox_note(sb, SANDBOX_LOG_INFO, "Woken by a connection to port %u", port);
    struct arena *arena = arena_new();
    int rc = resume(sb, arena, &info, err);
    arena_free(arena);
    return rc;
}

int sandboxes_wake(struct sandboxes *s, const char *workspace, const char *name,
                   struct arena *arena, struct sandbox_info *ret_info, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    if (!is_down(sb) && !sandbox_is_paused(sb)) {
        sandbox_info(sb, arena, ret_info);
        return 0;
    }
    if (!sandbox_wakes(sb))
        return stays(sb, err);
    sandbox_note(sb, SANDBOX_LOG_INFO, "Woken by a request");
    return resume(sb, arena, ret_info, err);
}
