/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver's steps for sandboxes that are to stand still, with all that is in their memory, and
 * to go on. The provider keeps them so whoever is killed; what is recorded here is the wish, and
 * both steps can be taken again at any time.
 *
 * One that is paused keeps what it was promised, so that going on cannot be refused. Time that it
 * stands still is no time that it ran, and its ttl begins anew when it goes on. Whatever was open
 * to something inside stays open: its other end is silent for a while.
 */

#include "base/log.h"
#include "loop/co.h"
#include "sandbox/history_state.h"
#include "sandbox/state.h"

enum { LOOK_MS = 100, HISTORY_WAIT_MS = 10 * 1000 };

static int pause_once(struct sandbox *sb, struct error *err)
{
    struct provider *p = sb->owner->provider;
    return p->ops->pause(p, sb->id, err);
}

/* Whoever reads or changes the sandbox's files for its history holds the history's lock, and would
 * hold it for as long as the sandbox is frozen: clones, and with them a deletion, would wait for
 * that. So the lock is taken for the moment of the pause. A sandbox that does not answer is paused
 * all the same, and its files' reader gives up after a while. */
static bool take_history(struct sandbox *sb)
{
    struct loop *loop = sb->owner->loop;
    const int64_t until = loop_now(loop) + HISTORY_WAIT_MS;
    struct error err;
    if (sb->history == NULL)
        return false;
    while (sb->history->busy && sb->goal == GOAL_PAUSED && loop_now(loop) < until)
        if (co_cond_wait(loop, &sb->history->freed, LOOK_MS, &err) < 0 && err.code != ERROR_TIMEOUT)
            return false;
    return !sb->history->busy && history_take(sb, &err) == 0;
}

static int pause_with_history(struct sandbox *sb, struct error *err)
{
    const bool taken = take_history(sb);
    int r = sb->goal == GOAL_PAUSED
                ? sandbox_with_patience(sb, pause_once, err)
                : error_set(err, ERROR_CANCELLED, "the sandbox is not to be paused any more");
    if (taken)
        history_unlock(sb);
    return r;
}

static int resume_once(struct sandbox *sb, struct error *err)
{
    struct provider *p = sb->owner->provider;
    return p->ops->resume(p, sb->id, err);
}

static void record(struct sandbox *sb, const char *type, const char *result, const char *message)
{
    struct error err;
    sandbox_add_event(sb, type, result, message);
    if (sandbox_save(sb, true, &err) < 0)
        log_error("sandbox %s: recording its state: %s", sb->id, err.message);
}

/* It ended before it could be frozen or go on, or while it stood still. */
static bool has_ended(const struct sandbox *sb, const struct error *err)
{
    return err->code == ERROR_NOT_RUNNING && sb->goal != GOAL_DELETED;
}

/* What somebody asked for and cannot be had goes on; what has come to its end is stopped then. */
static void give_up_pause(struct sandbox *sb, const struct error *err)
{
    const bool expired = sb->stop_reason != NULL;
    if (err->code == ERROR_CANCELLED && sb->goal != GOAL_PAUSED)
        return;
    log_error("sandbox %s: pause failed: %s", sb->id, err->message);
    if (has_ended(sb, err)) {
        sandbox_lost(sb, SANDBOX_FAILED, "Sandbox ended unexpectedly");
        return;
    }
    if (sb->goal != GOAL_PAUSED)
        return;
    record(sb, "PAUSE", "FAILURE", err->message);
    if (sb->goal != GOAL_PAUSED) /* somebody wants something else meanwhile */
        return;
    sb->goal = expired ? GOAL_STOPPED : GOAL_RUNNING;
    sb->stop_reason =
        expired ? "Sandbox stopped: its time was over, and it could not be paused" : NULL;
    sandbox_froze(sb); /* perhaps: so that it is told to go on, whatever comes next */
    sandbox_set_status(sb, expired ? SANDBOX_STOPPING : SANDBOX_RESUMING);
}

void sandbox_drive_pause(struct sandbox *sb)
{
    struct error err;
    sandbox_note(sb, SANDBOX_LOG_INFO, "Pausing sandbox...");
    tunnels_close_idle(sb);
    if (sandbox_wait_for_clones(sb, true, &err) < 0 || pause_with_history(sb, &err) < 0) {
        give_up_pause(sb, &err);
        return;
    }
    sandbox_froze(sb);
    tally_stopped(sb);
    if (sb->goal != GOAL_PAUSED)
        return;
    const char *reason = sb->stop_reason;
    sb->stop_reason = NULL;
    sandbox_set_status(sb, SANDBOX_PAUSED);
    record(sb, "PAUSE", "SUCCESS", reason != NULL ? reason : "Sandbox paused successfully");
}

void sandbox_drive_resume(struct sandbox *sb)
{
    struct error err;
    sandbox_note(sb, SANDBOX_LOG_INFO, "Resuming sandbox...");
    if (sandbox_wait_for_clones(sb, true, &err) < 0 || sandbox_thaw(sb, &err) < 0) {
        log_error("sandbox %s: resume failed: %s", sb->id, err.message);
        if (has_ended(sb, &err)) {
            sandbox_lost(sb, SANDBOX_FAILED, "Sandbox ended unexpectedly");
            return;
        }
        if (sb->goal != GOAL_RUNNING)
            return;
        sb->goal = GOAL_PAUSED;
        sandbox_froze(sb);
        sandbox_set_status(sb, SANDBOX_PAUSED);
        record(sb, "RESUME", "FAILURE", err.message);
        return;
    }
    tally_resumed(sb);
    sandbox_life_started(sb);
    if (sb->goal != GOAL_RUNNING)
        return;
    sandbox_set_status(sb, SANDBOX_RUNNING);
    record(sb, "RESUME", "SUCCESS", "Sandbox resumed successfully");
}

int sandbox_thaw(struct sandbox *sb, struct error *err)
{
    if (sandbox_with_patience(sb, resume_once, err) < 0)
        return -1;
    sb->paused = false;
    if (sb->paused_at_ms != 0)
        sb->paused_ms += loop_now(sb->owner->loop) - sb->paused_at_ms;
    sb->paused_at_ms = 0;
    return 0;
}

void sandbox_froze(struct sandbox *sb)
{
    sb->paused = true;
    if (sb->paused_at_ms == 0)
        sb->paused_at_ms = loop_now(sb->owner->loop);
}

/* --- for callers --- */

bool sandbox_is_paused(const struct sandbox *sb)
{
    return sb->status == SANDBOX_PAUSED || sb->status == SANDBOX_PAUSING;
}

bool sandboxes_is_paused(struct sandboxes *s, const char *workspace, const char *name,
                         int64_t *ret_ms)
{
    const struct sandbox *sb = sandbox_find(s, workspace, name, NULL);
    if (sb == NULL)
        return false;
    *ret_ms = sb->paused_ms + (sb->paused_at_ms == 0 ? 0 : loop_now(s->loop) - sb->paused_at_ms);
    return sandbox_is_paused(sb);
}
