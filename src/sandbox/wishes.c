/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Wishes: what somebody outside, or a lifespan that is over, wants a sandbox to be. Each is a row
 * of what it may be asked in and what it shows until it is so; it is checked, recorded, and left to
 * the driver (lifecycle.c).
 */

#include "sandbox/sandbox.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/timetext.h"
#include "sandbox/state.h"

struct wish {
    enum sandbox_goal goal;
    enum sandbox_status status; /* shown while it is worked on */
    unsigned from;              /* statuses it can be asked in, as bits */
    enum error_code refusal;    /* in another */
    const char *refusal_text;
};

#define BIT(status) (1u << SANDBOX_##status)

static const struct wish start_wish = {
    .goal = GOAL_RUNNING,
    .status = SANDBOX_STARTING,
    .from = BIT(STOPPED) | BIT(FAILED) | BIT(STOPPING),
    .refusal = ERROR_ALREADY_RUNNING,
    .refusal_text = "it cannot be started again",
};
static const struct wish stop_wish = {
    .goal = GOAL_STOPPED,
    .status = SANDBOX_STOPPING,
    .from =
        BIT(RUNNING) | BIT(CREATING) | BIT(STARTING) | BIT(PAUSED) | BIT(PAUSING) | BIT(RESUMING),
    .refusal = ERROR_NOT_RUNNING,
    .refusal_text = "there is nothing to stop",
};
static const struct wish pause_wish = {
    .goal = GOAL_PAUSED,
    .status = SANDBOX_PAUSING,
    .from = BIT(RUNNING) | BIT(RESUMING),
    .refusal = ERROR_NOT_RUNNING,
    .refusal_text = "there is nothing to pause",
};
static const struct wish resume_wish = {
    .goal = GOAL_RUNNING,
    .status = SANDBOX_RESUMING,
    .from = BIT(PAUSED) | BIT(PAUSING),
    .refusal = ERROR_ALREADY_RUNNING,
    .refusal_text = "there is nothing to resume",
};
static const struct wish delete_wish = {
    .goal = GOAL_DELETED,
    .status = SANDBOX_DELETING,
    .from = ~BIT(DELETING),
    .refusal = ERROR_SANDBOX_NOT_FOUND,
    .refusal_text = "it is being deleted already",
};

/* Nothing waits in here. */
static void set_wish(struct sandbox *sb, const char *actor, const struct wish *wish)
{
    restart_forget(sb);
    if (wish->goal != GOAL_RUNNING)
        sb->restart.failures = 0;
    sb->goal = wish->goal;
    sb->stop_reason = NULL;
    sb->resuming = false;
    snprintf(sb->updated_by, sizeof(sb->updated_by), "%s", actor);
    sandbox_set_status(sb, wish->status);
}

/* Records it, and has it worked on. */
static void follow_wish(struct sandbox *sb, const struct wish *wish, bool with_event)
{
    struct error err;
    if (sandbox_save(sb, with_event, &err) < 0)
        log_error("sandbox %s: recording its state: %s", sb->id, err.message);
    sandbox_drive(sb);
    if (wish->goal == GOAL_DELETED)
        sandbox_give_up_copy(sb); /* the driver waits for it, and nobody wants it any more */
}

static int check_not_over(const struct sandbox *sb, struct error *err)
{
    enum lifespan_rule rule;
    char why[LIFESPAN_WHY_SIZE];
    if (!lifespan_is_over(&sb->life.rules, sb->created_ms, time_now_ms(), &rule))
        return 0;
    lifespan_why(&sb->life.rules, rule, why);
    return error_set(err, ERROR_SANDBOX_EXPIRED,
                     "sandbox \"%s\" is not started any more: %s (spec.lifecycle)", sb->name, why);
}

/* A clone that could not be copied is copied again, which takes its source. */
static int check_copy(const struct sandbox *sb, struct error *err)
{
    struct error why;
    if (sb->clone_of == NULL || sb->status != SANDBOX_FAILED ||
        sandbox_check_source(sb->owner, sb->clone_of, &why) == 0)
        return 0;
    return error_set(err, ERROR_CONFLICT,
                     "sandbox \"%s\" is a clone that could not be copied, and cannot be now: %s",
                     sandbox_path(sb), why.message);
}

/* A sandbox that is about to be started again can be stopped, though it does not run; a clone that
 * is to be stopped once it has its files can be started before that. */
static bool can_be_asked(const struct sandbox *sb, const struct wish *wish)
{
    bool waits =
        (sb->status == SANDBOX_STOPPED || sb->status == SANDBOX_FAILED) && sandbox_is_due(sb);
    bool stops = sb->status == SANDBOX_CREATING && sb->goal == GOAL_STOPPED;
    return wish->from & 1u << sb->status || (wish == &stop_wish && waits) ||
           (wish == &start_wish && stops);
}

static int record_wish(struct sandboxes *s, const char *workspace, const char *name,
                       const char *actor, const struct wish *wish, struct arena *arena,
                       struct sandbox_info *ret_info, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    sandbox_hold(sb);
    if (wish == &start_wish && sandbox_is_paused(sb))
        wish = &resume_wish;
    if (s->closing && (wish->goal == GOAL_RUNNING || wish->goal == GOAL_PAUSED))
        return error_set(err, ERROR_UNAVAILABLE, "the server is shutting down");
    if (sb->status == SANDBOX_DELETING)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "sandbox \"%s\" is being deleted",
                         sandbox_path(sb));
    if (!can_be_asked(sb, wish))
        return error_set(err, wish->refusal, "sandbox \"%s\" is %s: %s", sandbox_path(sb),
                         sandbox_status_text(sb->status), wish->refusal_text);
    /* Its disk was promised when it was made, and it may have its files there by now. */
    const struct spec_limits promised = {.of[RESOURCE_DISK] = sb->limits.of[RESOURCE_DISK]};
    if (wish->goal == GOAL_RUNNING &&
        (check_not_over(sb, err) < 0 || check_copy(sb, err) < 0 ||
         admission_check_single(&s->admission, &promised, &sb->limits, err) < 0 ||
         pools_reserve(s, &sb->promise, PROMISE_ALL, &sb->limits, err) < 0))
        return -1;
    set_wish(sb, actor, wish);
    sandbox_info(sb, arena, ret_info);
    follow_wish(sb, wish, false);
    return 0;
}

void sandbox_condemn(struct sandbox *sb, const char *actor)
{
    sandbox_hold(sb);
    restart_forget(sb);
    sb->goal = GOAL_DELETED;
    sb->stop_reason = NULL;
    snprintf(sb->updated_by, sizeof(sb->updated_by), "%s", actor);
    sandbox_set_status(sb, SANDBOX_DELETING);
    sandbox_drive(sb);
    sandbox_give_up_copy(sb);
    sandbox_drop(sb);
}

void sandbox_expire(struct sandbox *sb, const struct lifespan_end *end, const char *why)
{
    static const struct {
        const struct wish *wish;
        const char *reasons[LIFESPAN_RULES];
    } ends[] = {
        [LIFESPAN_STOP] = {&stop_wish,
                           {[LIFESPAN_TTL] = "Sandbox stopped: its ttl was over",
                            [LIFESPAN_IDLE] = "Sandbox stopped: it was idle",
                            [LIFESPAN_MAX_AGE] = "Sandbox stopped: it reached its max age",
                            [LIFESPAN_EXPIRES] = "Sandbox stopped: its date had come"}},
        [LIFESPAN_PAUSE] = {&pause_wish,
                            {[LIFESPAN_TTL] = "Sandbox paused: its ttl was over",
                             [LIFESPAN_IDLE] = "Sandbox paused: it was idle",
                             [LIFESPAN_MAX_AGE] = "Sandbox paused: it reached its max age",
                             [LIFESPAN_EXPIRES] = "Sandbox paused: its date had come"}},
        [LIFESPAN_DELETE] = {&delete_wish, {NULL}},
    };
    const struct wish *wish = ends[end->action].wish;
    char message[LIFESPAN_WHY_SIZE + 64];
    snprintf(message, sizeof(message), "Sandbox expired: %s; it is %s", why,
             lifespan_action_done(end->action));
    set_wish(sb, "cella", wish);
    sb->stop_reason = ends[end->action].reasons[end->rule];
    sandbox_add_event(sb, "EXPIRE", "SUCCESS", message);
    follow_wish(sb, wish, true);
}

int sandboxes_start(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                    struct arena *arena, struct sandbox_info *ret_info, struct error *err)
{
    return record_wish(s, workspace, name, actor, &start_wish, arena, ret_info, err);
}

/* The same, under the name that people look for; the event tells which it was. */
int sandboxes_resume(struct sandboxes *s, const char *workspace, const char *name,
                     const char *actor, struct arena *arena, struct sandbox_info *ret_info,
                     struct error *err)
{
    if (sandboxes_start(s, workspace, name, actor, arena, ret_info, err) < 0)
        return -1;
    struct sandbox *sb = sandbox_find(s, workspace, ret_info->id, NULL);
    if (sb != NULL && sb->status == SANDBOX_STARTING)
        sb->resuming = true;
    return 0;
}

int sandboxes_stop(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                   struct arena *arena, struct sandbox_info *ret_info, struct error *err)
{
    return record_wish(s, workspace, name, actor, &stop_wish, arena, ret_info, err);
}

int sandboxes_pause(struct sandboxes *s, const char *workspace, const char *name, const char *actor,
                    struct arena *arena, struct sandbox_info *ret_info, struct error *err)
{
    struct sandbox_info settled;
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    /* One that the end of the server interrupted is paused as if it had never been down. */
    if (sandbox_starts_on_use(sb) && sandbox_wake(sb, USE_REQUEST, 0, err) < 0)
        return -1;
    if (sandboxes_settle(s, workspace, name, arena, &settled, err) < 0)
        return -1;
    return record_wish(s, workspace, settled.id, actor, &pause_wish, arena, ret_info, err);
}

int sandboxes_delete(struct sandboxes *s, const char *workspace, const char *name,
                     const char *actor, struct arena *arena, struct sandbox_info *ret_info,
                     struct error *err)
{
    return record_wish(s, workspace, name, actor, &delete_wish, arena, ret_info, err);
}
