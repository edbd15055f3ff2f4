/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From wish to fact. A call from outside records a goal (wishes.c: running, paused, stopped,
 * deleted) and returns; a driver, one coroutine per sandbox and only while there is something to
 * do, brings the sandbox there step by step. A goal that changes while a step is under way is
 * simply the next step. The same driver finishes what a crash interrupted: recovery sets goals, and
 * that is all.
 */

#include "sandbox/sandbox.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "image/image.h"
#include "loop/co.h"
#include "observe/meters.h"
#include "observe/span.h"
#include "sandbox/history_state.h"
#include "sandbox/state.h"

enum {
    STOP_GRACE_MS = 5 * 1000,
    SHUTDOWN_WAIT_MS = 25 * 1000,
    RETRY_MS = 50,
    RETRIES = 600, /* of RETRY_MS, while the provider is away */
};

/* --- the driver --- */

static void save_or_log(struct sandbox *sb)
{
    struct error err;
    if (sandbox_save(sb, true, &err) < 0)
        log_error("sandbox %s: recording its state: %s", sb->id, err.message);
}

int sandbox_plan(const struct sandbox *sb, struct plan *ret_plan, struct error *err)
{
    const char *image;
    if (image_resolve(sb->image, &image, err) < 0)
        return -1;
    spec_plan(sb->id, sb->name, image, &sb->limits, ret_plan);
    ret_plan->memory_bandwidth = spec_bandwidth_share(&sb->owner->admission.machine, &sb->limits);
    trust_plan(&sb->security, ret_plan);
    sandbox_network_plan(sb, ret_plan);
    return 0;
}

static int take_address(void *ctx, const struct warden_entry *entry, struct error *err)
{
    struct sandbox *sb = ctx;
    if (strcmp(entry->id, sb->id) == 0)
        sandbox_network_at(sb, entry->address, entry->address6);
    return 0;
}

static int start_once(struct sandbox *sb, struct error *err)
{
    struct plan plan;
    struct provider_started started;
    struct provider *p = sb->owner->provider;
    if (sandbox_plan(sb, &plan, err) < 0)
        return -1;
    sb->exited = false;
    bool earlier = false; /* a cellad that was killed had started it, by the rules of that time */
    if (p->ops->start(p, &plan, &started, err) == 0) {
        earlier = started.joined;
        sandbox_network_at(sb, started.address, started.address6);
    } else {
        if (err->code != ERROR_ALREADY_RUNNING)
            return -1;
        earlier = true;
        if (plan.network != PLAN_NETWORK_NONE && p->ops->list(p, take_address, sb, err) < 0)
            return -1;
    }
    sb->agent_checked = !earlier; /* it is of the warden's own release */
    if (earlier && plan.network != PLAN_NETWORK_NONE && sandbox_network_set(sb, err) < 0)
        return -1;
    if (sb->exited)
        return error_set(err, ERROR_INTERNAL, "it ended right after its start");
    return 0;
}

static int stop_once(struct sandbox *sb, struct error *err)
{
    struct provider *p = sb->owner->provider;
    if (sb->paused && sandbox_thaw(sb, err) < 0 && err->code != ERROR_NOT_RUNNING)
        return -1; /* what stands still cannot be asked to end */
    sandbox_hang_up(sb);
    sandbox_agent_close(sb);
    history_drop_watch(sb);
    tunnels_close_idle(sb);
    return p->ops->stop(p, sb->id, STOP_GRACE_MS, err);
}

static int remove_once(struct sandbox *sb, struct error *err)
{
    struct provider *p = sb->owner->provider;
    sandbox_agent_close(sb);
    history_drop_watch(sb);
    tunnels_close_idle(sb);
    return p->ops->remove(p, sb->id, err);
}

/* A provider that is away for a moment (the warden was killed and is being restarted) is waited
 * for, and so is one that is still clearing up what a crash left of the sandbox (CONFLICT). */
int sandbox_with_patience(struct sandbox *sb, int (*step)(struct sandbox *, struct error *),
                          struct error *err)
{
    for (int i = 0;; i++) {
        if (step(sb, err) == 0)
            return 0;
        if ((err->code != ERROR_UNAVAILABLE && err->code != ERROR_CONFLICT) || i == RETRIES)
            return -1;
        if (sb->owner->closing && step == sandbox_copy_once)
            return -1;
        meter_count(loop_meters(sb->owner->loop), METER_RETRY_WARDEN);
        if (co_sleep(sb->owner->loop, RETRY_MS, err) < 0)
            return -1;
    }
}

/* The first time that it is brought up. */
static void count_create(struct sandbox *sb, bool made, enum meter_histogram way)
{
    struct meters *meters = loop_meters(sb->owner->loop);
    if (sb->asked_ns == 0)
        return;
    meter_count(meters, made ? METER_CREATE_OK : METER_CREATE_FAILED);
    if (made)
        meter_took(meters, way, sb->asked_ns);
    sb->asked_ns = 0;
    sb->cloned = false;
}

/* A sandbox's life, told when it is over. */
static void count_session(const struct sandbox *sb)
{
    struct meters *meters = loop_meters(sb->owner->loop);
    struct sandbox_tally tally;
    tally_info(sb, &tally);
    meter_observe(meters, METER_SESSION_EXECUTIONS, (double)tally.commands);
    meter_observe(meters, METER_SESSION_DURATION, (double)tally.total_ms / 1e3);
}

/* A clone's first step: its files. */
static void drive_copy(struct sandbox *sb)
{
    struct error err;
    if (sandbox_with_patience(sb, sandbox_copy_once, &err) < 0) {
        if (sb->goal == GOAL_DELETED)
            return;
        count_create(sb, false, METER_CREATE_CLONE);
        sb->goal = GOAL_STOPPED;
        sandbox_set_status(sb, SANDBOX_FAILED);
        if (sb->owner->closing)
            return; /* not recorded: whoever comes next goes on with it */
        log_error("sandbox %s: cloning failed: %s", sb->id, err.message);
        sandbox_add_event(sb, "CLONE", "FAILURE", err.message);
        save_or_log(sb);
        return;
    }
    sandbox_forget_source(sb); /* recorded with what comes next; until then it is copied again */
    sb->cloned = true;
    if (sb->goal == GOAL_STOPPED)
        count_create(sb, true, METER_CREATE_CLONE);
    if (sb->goal != GOAL_STOPPED)
        return;
    bool asked = sb->status == SANDBOX_STOPPING;
    sandbox_set_status(sb, SANDBOX_STOPPED);
    if (asked)
        sandbox_add_event(sb, "STOP", "SUCCESS", "Sandbox stopped successfully");
    if (sandbox_save(sb, asked, &err) < 0)
        log_error("sandbox %s: recording its state: %s", sb->id, err.message);
}

/* One that a pool has made ahead only gets its name; should that fail, it is made like any other.
 */
static int bring_up(struct sandbox *sb, enum meter_histogram *ret_way, struct error *err)
{
    *ret_way = sb->cloned ? METER_CREATE_CLONE : METER_CREATE_SCRATCH;
    if (sb->unclaimed) {
        *ret_way = METER_CREATE_POOL;
        if (sandbox_with_patience(sb, sandbox_claim, err) == 0)
            return 0;
        *ret_way = METER_CREATE_SCRATCH;
        log_info("sandbox %s: made anew: %s", sb->id, err->message);
        if (sandbox_with_patience(sb, remove_once, err) < 0)
            return -1;
        sb->unclaimed = false;
    }
    return sandbox_with_patience(sb, start_once, err);
}

static void drive_start(struct sandbox *sb)
{
    struct error err;
    enum meter_histogram way = METER_CREATE_SCRATCH;
    struct span span;
    span_begin(co_errand(sb->owner->loop), &span, "sandbox start");
    sandbox_note(sb, SANDBOX_LOG_INFO,
                 sb->resuming ? "Resuming sandbox..." : "Starting sandbox...");
    int r = sandbox_wait_for_clones(sb, true, &err);
    if (r == 0) {
        sb->owner->starting++;
        r = bring_up(sb, &way, &err);
        if (--sb->owner->starting == 0)
            pools_wake(sb->owner);
    }
    span_end(co_errand(sb->owner->loop), &span, SPAN_INTERNAL, r < 0 ? &err : NULL, NULL, 0);
    count_create(sb, r == 0, way);
    if (r < 0) {
        log_error("sandbox %s: start failed: %s", sb->id, err.message);
        bool wanted = sb->goal == GOAL_RUNNING;
        if (wanted) {
            sb->goal = GOAL_STOPPED;
            restart_failed(sb);
        }
        if (sb->goal != GOAL_DELETED) {
            sandbox_set_status(sb, SANDBOX_FAILED);
            sandbox_add_event(sb, "START", "FAILURE", err.message);
            save_or_log(sb);
        }
        return;
    }
    sb->up = true;
    sandbox_network_started(sb);
    metrics_started(sb);
    tally_started(sb);
    sandbox_life_started(sb);
    restart_started(sb);
    if (sb->goal != GOAL_RUNNING)
        return;
    sandbox_set_status(sb, SANDBOX_RUNNING);
    if (sb->resuming)
        sandbox_add_event(sb, "RESUME", "SUCCESS", "Sandbox resumed successfully");
    else
        sandbox_add_event(sb, "START", "SUCCESS", "Sandbox started successfully");
    sb->resuming = false;
    save_or_log(sb);
}

static void tell_stopped(struct sandbox *sb, const char *reason)
{
    sb->stop_reason = NULL;
    sandbox_set_status(sb, SANDBOX_STOPPED);
    sandbox_add_event(sb, "STOP", "SUCCESS",
                      reason != NULL ? reason : "Sandbox stopped successfully");
    save_or_log(sb);
}

static void drive_stop(struct sandbox *sb)
{
    struct error err;
    const char *reason = sb->stop_reason;
    sandbox_note(sb, SANDBOX_LOG_INFO, "Stopping sandbox...");
    if (sandbox_with_patience(sb, stop_once, &err) < 0) {
        log_error("sandbox %s: stop failed: %s", sb->id, err.message);
        sb->goal = GOAL_RUNNING; /* it still runs, so say so */
        sandbox_set_status(sb, SANDBOX_RUNNING);
        sandbox_add_event(sb, "STOP", "FAILURE", err.message);
        save_or_log(sb);
        return;
    }
    sb->up = sb->paused = false;
    sandbox_network_stopped(sb);
    tally_stopped(sb);
    sb->stop_reason = NULL;
    if (sb->goal == GOAL_STOPPED)
        tell_stopped(sb, reason);
}

static void drive_delete(struct sandbox *sb)
{
    struct error err;
    sandbox_note(sb, SANDBOX_LOG_INFO, "Deleting sandbox...");
    if (sandbox_pass_clones_on(sb, &err) < 0 || sandbox_wait_for_clones(sb, false, &err) < 0 ||
        sandbox_with_patience(sb, remove_once, &err) < 0 ||
        store_delete_sandbox(sb->owner->store, sb->id, &err) < 0) {
        log_error("sandbox %s: delete failed: %s", sb->id, err.message);
        sb->goal = GOAL_STOPPED;
        sb->up = sb->paused = false;
        sandbox_set_status(sb, SANDBOX_FAILED);
        sandbox_add_event(sb, "DELETE", "FAILURE", err.message);
        save_or_log(sb);
        return;
    }
    count_session(sb);
    metrics_forget(sb);
    history_forget(sb);
    egress_forget(sb);
    network_log_forget(sb);
    sb->unclaimed = false; /* it went with the rest */
    sandbox_remove(sb);
}

/* A clone that could not be made stays failed until somebody starts it: then it is tried again. */
static bool needs_files(const struct sandbox *sb)
{
    return sb->clone_of != NULL && sb->status != SANDBOX_FAILED;
}

static void driver(void *arg)
{
    struct sandbox *sb = arg;
    struct sandboxes *s = sb->owner;
    while (!sb->gone) {
        if (sb->goal == GOAL_DELETED)
            drive_delete(sb);
        else if (needs_files(sb))
            drive_copy(sb);
        else if (sb->goal == GOAL_RUNNING && !sb->up)
            drive_start(sb);
        else if ((sb->goal == GOAL_RUNNING || sb->goal == GOAL_PAUSED) && sb->exited)
            sandbox_lost(sb, SANDBOX_FAILED, "Sandbox ended unexpectedly"); /* meanwhile */
        else if (sb->goal == GOAL_RUNNING && (sb->paused || sb->status == SANDBOX_RESUMING))
            sandbox_drive_resume(sb);
        else if (sb->goal == GOAL_PAUSED && (!sb->paused || sb->status == SANDBOX_PAUSING))
            sandbox_drive_pause(sb);
        else if (sb->goal == GOAL_STOPPED && sb->up)
            drive_stop(sb);
        else if (sb->goal == GOAL_STOPPED && sb->status == SANDBOX_STOPPING)
            tell_stopped(sb, sb->stop_reason); /* before its start had begun */
        else if (sb->goal == GOAL_RUNNING && sb->status == SANDBOX_STARTING)
            drive_stop(sb); /* a stop and a start, before either had begun: both were promised */
        else
            break;
    }
    sb->driven = false;
    sandbox_save_notes(sb); /* last: nobody waits for them */
    if (!sb->up)            /* one that runs is looked at soon, and often */
        tally_save(sb);
    sandbox_drop(sb);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

void sandbox_drive(struct sandbox *sb)
{
    struct error err;
    if (sb->driven)
        return; /* it looks at the goal again after each step */
    sb->driven = true;
    sandbox_hold(sb);
    sb->owner->drivers++;
    if (co_spawn(sb->owner->loop, driver, sb, NULL, &err) < 0) {
        log_error("sandbox %s: %s", sb->id, err.message);
        sb->driven = false;
        sb->owner->drivers--;
        sandbox_drop(sb);
    }
}

/* --- the end --- */

void sandboxes_set_keep(struct sandboxes *s, bool keep)
{
    s->keep = keep;
}

void sandboxes_stop_all(struct sandboxes *s)
{
    struct error err;
    s->closing = true;
    reaper_stop(s);
    restarts_stop(s);
    censuses_stop(s);
    sandboxes_end_monitors(s);
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next)
        tunnels_close_idle(sb);
    for (struct sandbox *sb = s->ids, *next; sb != NULL; sb = next) {
        next = sb->by_id.next;
        if (s->keep || (sb->goal != GOAL_RUNNING && sb->goal != GOAL_PAUSED))
            continue;
        sb->restart.interrupted = sb->goal == GOAL_RUNNING;
        sb->stop_reason = sb->goal == GOAL_RUNNING
                              ? "Sandbox stopped because the server was shut down"
                              : "Sandbox stopped because the server was shut down: it was paused, "
                                "its memory is gone, and its files are kept";
        sb->goal = GOAL_STOPPED;
        if (sb->up || sb->driven)
            sandbox_set_status(sb, SANDBOX_STOPPING);
        sandbox_drive(sb);
    }
    for (;;) { /* whoever comes next makes these copies anew */
        struct sandbox *sb = s->ids;
        while (sb != NULL && (!sb->copying || sb->given_up))
            sb = sb->by_id.next;
        if (sb == NULL)
            break;
        sandbox_give_up_copy(sb);
    }
    pools_stop(s);
    while (s->drivers > 0)
        if (co_cond_wait(s->loop, &s->idle, SHUTDOWN_WAIT_MS, &err) < 0)
            break;
    egress_link_stop(s);
    metrics_stop(s);
}
