/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waking a sandbox that is stopped, for those who connect to a port of it. That is its owner's
 * choice (spec.lifecycle.wakeOnConnect), because a stranger can do it who knows a public address.
 * One that is switched off (enabled: false) or has failed stays as it is: the one on purpose, the
 * other because it would fail again with every connection.
 */

#include "base/cleanup.h"
#include "sandbox/state.h"

static bool is_to_wake(const struct sandbox *sb)
{
    return sb->life.rules.wake && sb->enabled &&
           (sb->status == SANDBOX_STOPPED || sb->status == SANDBOX_STOPPING);
}

int sandbox_wake(struct sandboxes *s, const char *workspace, const char *name, uint16_t port,
                 struct error *err)
{
    struct sandbox_info info;
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    if (!is_to_wake(sb))
        return error_set(err, ERROR_NOT_RUNNING, "sandbox \"%s\" is %s", sandbox_path(sb),
                         sandbox_status_text(sb->status));
    sandbox_note(sb, SANDBOX_LOG_INFO, "Woken by a connection to port %u", port);
    struct arena *arena = arena_new();
    int rc = sandboxes_resume(s, workspace, sb->id, "cella", arena, &info, err);
    arena_free(arena);
    /* How much there is on this machine is not for whoever connects. */
    if (rc < 0 && err->code == ERROR_INSUFFICIENT_RESOURCES)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the sandbox is stopped, and there is no room to start it right now");
    return rc;
}
