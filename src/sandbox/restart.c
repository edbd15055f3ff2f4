/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starts sandboxes again that went down although nobody stopped them, by their policies.
 *
 * Each sandbox has a mark, `interrupted`, which is stored with it: it is down and its owner wants
 * it to run. The end of the server sets it, so does a start of the server that finds a sandbox gone
 * that should run, and so does the end of the pid 1 of one that is always to run. Whatever somebody
 * asks of its life cycle (start, stop, pause, delete) takes it away. wake.c starts marked sandboxes
 * for those who use them; this file starts them with the server, and after a delay.
 *
 * A delay is one timer per sandbox, so that waiting costs nothing.
 */

#include "sandbox/restart.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "sandbox/state.h"

enum { AT_ONCE = 4 }; /* starts under way while the server starts: requests have room beside them */

bool sandbox_is_due(const struct sandbox *sb)
{
    return sb->restart.interrupted && sb->restart.policy != RESTART_NO;
}

bool sandbox_starts_on_use(const struct sandbox *sb)
{
    return sb->status == SANDBOX_STOPPED && sandbox_is_due(sb);
}

int64_t sandbox_restarts_in_ms(const struct sandbox *sb)
{
    int64_t left = sb->restart.at_ms - loop_now(sb->owner->loop);
    return sb->restart.at_ms == 0 ? -1 : left > 0 ? left : 0;
}

static void disarm(struct sandbox *sb)
{
    timer_stop(&sb->restart.timer);
    sb->restart.at_ms = 0;
}

void restart_forget(struct sandbox *sb)
{
    disarm(sb);
    sb->restart.interrupted = false;
}

/* --- one sandbox --- */

/* Starts it as if somebody had asked for that; what refuses a start refuses this one. */
static int start_again(struct sandbox *sb, struct error *err)
{
    struct sandbox_info info;
    struct arena *arena = arena_new();
    int r = sandboxes_start(sb->owner, sb->workspace, sb->id, "cella", arena, &info, err);
    arena_free(arena);
    return r;
}

static void fired(struct timer *timer);

/* After the delay that so many failures ask for. */
static void arm(struct sandbox *sb)
{
    int64_t delay = restart_delay_ms(sb->restart.failures);
    sb->restart.at_ms = loop_now(sb->owner->loop) + delay;
    timer_start(sb->owner->loop, &sb->restart.timer, delay, fired);
    sandbox_note(sb, SANDBOX_LOG_INFO, "Starting it again in %.1f s (spec.restart: always)",
                 (double)delay / 1000);
}

static bool may_start(const struct sandbox *sb)
{
    bool ending = sb->group != NULL && sb->group->ending;
    return !sb->gone && !ending && !sb->owner->closing && sandbox_is_due(sb) &&
           (sb->status == SANDBOX_STOPPED || sb->status == SANDBOX_FAILED);
}

/* The machine may be full now and not later; a life span that is over stays so. */
static void try_start(struct sandbox *sb)
{
    struct error err;
    if (!may_start(sb) || start_again(sb, &err) == 0)
        return;
    log_warn("sandbox %s: not started again: %s", sb->id, err.message);
    sandbox_note(sb, SANDBOX_LOG_WARN, "Not started again: %s", err.message);
    if (sb->restart.policy != RESTART_ALWAYS || err.code == ERROR_SANDBOX_EXPIRED || !may_start(sb))
        return;
    sb->restart.failures++;
    arm(sb);
}

/* The end of a coroutine that the end of the server waits for. */
static void end_driver(struct sandboxes *s)
{
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

static void run_restart(void *arg)
{
    struct sandbox *sb = arg;
    struct sandboxes *s = sb->owner;
    try_start(sb);
    sandbox_save_notes(sb);
    sandbox_drop(sb);
    end_driver(s);
}

static void fired(struct timer *timer)
{
    struct sandbox *sb = container_of(timer, struct sandbox, restart.timer);
    struct error err;
    disarm(sb);
    sandbox_hold(sb);
    sb->owner->drivers++;
    if (co_spawn(sb->owner->loop, run_restart, sb, NULL, &err) < 0) {
        log_error("sandbox %s: %s", sb->id, err.message);
        sb->owner->drivers--;
        arm(sb);
        sandbox_drop(sb);
    }
}

void restart_started(struct sandbox *sb)
{
    sb->restart.started_ms = loop_now(sb->owner->loop);
}

void restart_failed(struct sandbox *sb)
{
    struct restart *r = &sb->restart;
    int64_t now = loop_now(sb->owner->loop);
    r->interrupted = r->policy == RESTART_ALWAYS;
    if (!r->interrupted)
        return;
    bool stable = r->started_ms != 0 && now - r->started_ms >= RESTART_STABLE_MS;
    r->failures = stable ? 1 : r->failures + 1;
    r->started_ms = 0;
    if (!sb->owner->closing)
        arm(sb);
}

void restart_set_policy(struct sandbox *sb, enum restart_policy policy)
{
    sb->restart.policy = policy;
    if (policy != RESTART_ALWAYS)
        disarm(sb);
    else if (may_start(sb) && sb->restart.at_ms == 0)
        arm(sb);
}

/* --- with the server --- */

struct boot {
    struct sandbox **due; /* held, until a worker takes it */
    size_t count, next;
    unsigned refs;
};

static void boot_drop(struct boot *boot)
{
    if (--boot->refs > 0)
        return;
    while (boot->next < boot->count)
        sandbox_drop(boot->due[boot->next++]);
    free(boot->due);
    free(boot);
}

struct boot_worker {
    struct sandboxes *owner;
    struct boot *boot;
};

/* One after the other; the other workers do the same beside it. */
static void boot_worker(void *arg)
{
    struct boot_worker worker = *(struct boot_worker *)arg;
    struct boot *boot = worker.boot;
    struct loop *loop = worker.owner->loop;
    struct error ignored;
    free(arg);
    while (boot->next < boot->count && !worker.owner->closing) {
        struct sandbox *sb = boot->due[boot->next++];
        try_start(sb);
        while (!sb->gone && sandbox_comes_up(sb))
            if (co_cond_wait(loop, &sb->changed, -1, &ignored) < 0)
                break;
        sandbox_save_notes(sb);
        sandbox_drop(sb);
    }
    boot_drop(boot);
    end_driver(worker.owner);
}

static void spawn_boot_worker(struct sandboxes *s, struct boot *boot)
{
    struct error err;
    struct boot_worker *worker = malloc(sizeof(*worker));
    if (worker == NULL)
        abort();
    *worker = (struct boot_worker){s, boot};
    s->drivers++;
    boot->refs++;
    if (co_spawn(s->loop, boot_worker, worker, NULL, &err) == 0)
        return;
    log_error("starting sandboxes: %s", err.message);
    free(worker);
    boot_drop(boot);
    end_driver(s);
}

static bool starts_with_server(const struct sandbox *sb)
{
    return may_start(sb) &&
           (sb->restart.policy == RESTART_ON_BOOT || sb->restart.policy == RESTART_ALWAYS);
}

void restarts_begin(struct sandboxes *s)
{
    struct boot *boot = calloc(1, sizeof(*boot));
    if (boot == NULL ||
        (boot->due = calloc(HASH_CNT(by_id, s->ids) + 1, sizeof(*boot->due))) == NULL)
        abort();
    boot->refs = 1;
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next) {
        if (!starts_with_server(sb))
            continue;
        sandbox_hold(sb);
        boot->due[boot->count++] = sb;
    }
    if (boot->count > 0)
        log_info("starting %zu sandboxes that ran before", boot->count);
    for (size_t i = 0; i < AT_ONCE && i < boot->count; i++)
        spawn_boot_worker(s, boot);
    boot_drop(boot);
}

void restarts_stop(struct sandboxes *s)
{
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next)
        disarm(sb);
}
