/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bringing a sandbox up for whoever needs it. Two settings allow that: spec.restart, for a sandbox
 * that the end of the server interrupted, and spec.lifecycle.wakeOnConnect, which is an opt-in
 * because a stranger who knows a public address can start the sandbox. sandbox_wake() in state.h
 * has the table. One that has failed stays as it is, because it would fail again with every
 * request.
 */

#include "base/cleanup.h"
#include "sandbox/state.h"

/* Whether a connection starts or resumes the sandbox: its owner's choice. */
static bool wakes_on_connect(const struct sandbox *sb)
{
    return sb->life.rules.wake && sb->enabled;
}

static bool may_wake(const struct sandbox *sb, enum sandbox_use use)
{
    if (sandbox_is_paused(sb))
        return wakes_on_connect(sb);
    if (sandbox_starts_on_use(sb))
        return true;
    bool down = sb->status == SANDBOX_STOPPED || sb->status == SANDBOX_STOPPING;
    return down && use == USE_VISIT && wakes_on_connect(sb);
}

static void note(struct sandbox *sb, uint16_t port)
{
    if (port != 0)
        sandbox_note(sb, SANDBOX_LOG_INFO, "Woken by a connection to port %u", port);
    else
        sandbox_note(sb, SANDBOX_LOG_INFO, "Woken by a request");
}

int sandbox_wake(struct sandbox *sb, enum sandbox_use use, uint16_t port, struct error *err)
{
    struct sandbox_info info;
    if (!may_wake(sb, use))
        return 0;
    note(sb, port);
    struct arena *arena = arena_new();
    int rc = sandboxes_resume(sb->owner, sb->workspace, sb->id, "cella", arena, &info, err);
    arena_free(arena);
    if (rc == 0 || err->code == ERROR_ALREADY_RUNNING)
        return 0;
    /* How much there is on this machine is not for whoever connects. */
    if (use == USE_VISIT && err->code == ERROR_INSUFFICIENT_RESOURCES)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the sandbox is stopped, and there is no room to start it right now");
    return -1;
}

int sandboxes_wake(struct sandboxes *s, const char *workspace, const char *name,
                   struct arena *arena, struct sandbox_info *ret_info, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    sandbox_hold(sb);
    if (sandbox_wake(sb, USE_VISIT, 0, err) < 0)
        return -1;
    if (sb->status == SANDBOX_STOPPED || sb->status == SANDBOX_STOPPING || sandbox_is_paused(sb))
        return error_set(err, ERROR_NOT_RUNNING, "sandbox \"%s\" is %s", sandbox_path(sb),
                         sandbox_status_text(sb->status));
    sandbox_info(sb, arena, ret_info);
    return 0;
}
