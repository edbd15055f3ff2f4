/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who ends sandboxes whose time is over. Each sandbox with rules has one timer in the loop's heap,
 * for the end that comes first; nothing else happens until it fires. Being used only moves a time
 * stamp: a timer that fires too early for that is set again. Then one coroutine looks at those
 * whose timers have fired, one after the other: what is idle by all that is known is sampled once
 * more, since cpu may have been used since the last sample.
 *
 * What the store has is enough to go on after a crash: rules and the beginning of the ttl are
 * written with every change, the last use every now and then (the difference is given to the
 * sandbox). An end is a wish like a client's, recorded before it is worked on.
 */

#include "sandbox/lifespan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/timetext.h"
#include "loop/co.h"
#include "sandbox/groups.h"
#include "sandbox/state.h"

enum {
    LOOK_AGAIN_MS = 24 * 3600 * 1000, /* the most that a timer is set to */
    UNKNOWN_MS = 2000,                /* what cannot be told now is looked at again */
    RETRY_MS = 60 * 1000,             /* after an end that failed */
    SAVE_MOST_S = 60,
    SAVE_PARTS = 4, /* of its idle time-out: so often a use is worth writing down */
    FAR_AWAY_S = 1000000000,
};

struct reaper {
    struct sandboxes *sandboxes;
    struct co *co; /* NULL: not running */
    bool stopping;
    bool clock_set; /* somebody has set the machine's clock */
    struct co_cond wake, ended;
    struct sandbox *first_due, **last_due; /* held */
    int clock_fd;
    struct watch clock;
};

/* --- facts --- */

static struct lifespan_clock clock_of(const struct sandboxes *s)
{
    return (struct lifespan_clock){.loop_ms = loop_now(s->loop), .wall_ms = time_now_ms()};
}

static int64_t to_wall(int64_t loop_ms, const struct lifespan_clock *now)
{
    return now->wall_ms - (now->loop_ms - loop_ms);
}

/* A stamp that is in the future was made by a clock that was wrong. */
static int64_t from_wall(int64_t wall_ms, const struct lifespan_clock *now)
{
    return now->loop_ms - (wall_ms < now->wall_ms ? now->wall_ms - wall_ms : 0);
}

bool sandbox_is_busy(const struct sandbox *sb)
{
    return sb->life.streams > 0 || sb->tunnels > sb->idle_tunnel_count || sb->log_followers > 0 ||
           (sb->agent != NULL && channel_calls(sb->agent) > 0);
}

static struct lifespan_facts facts_of(const struct sandbox *sb)
{
    return (struct lifespan_facts){
        .running = sb->status == SANDBOX_RUNNING,
        .busy = sandbox_is_busy(sb),
        .created_ms = sb->created_ms,
        .ttl_from_ms = sb->life.ttl_from_ms,
        .active_ms = sb->life.active_ms,
    };
}

static bool next_end(const struct sandbox *sb, const struct lifespan_clock *now,
                     struct lifespan_end *ret_end)
{
    const struct lifespan_facts facts = facts_of(sb);
    return sb->status != SANDBOX_DELETING && lifespan_next(&sb->life.rules, &facts, now, ret_end);
}

/* --- timers --- */

static void enqueue(struct sandbox *sb)
{
    struct reaper *r = sb->owner->reaper;
    if (sb->life.due)
        return;
    sandbox_hold(sb);
    sb->life.due = true;
    sb->life.next_due = NULL;
    *r->last_due = sb;
    r->last_due = &sb->life.next_due;
    co_cond_wake(&r->wake);
}

static struct sandbox *dequeue(struct reaper *r)
{
    struct sandbox *sb = r->first_due;
    if (sb == NULL)
        return NULL;
    r->first_due = sb->life.next_due;
    if (r->first_due == NULL)
        r->last_due = &r->first_due;
    sb->life.due = false;
    return sb;
}

static void fired(struct timer *timer)
{
    enqueue(container_of(timer, struct sandbox, life.timer));
}

static void arm(struct sandbox *sb, int64_t at_ms)
{
    int64_t delay = at_ms - loop_now(sb->owner->loop);
    if (delay < 0)
        delay = 0;
    timer_start(sb->owner->loop, &sb->life.timer, delay < LOOK_AGAIN_MS ? delay : LOOK_AGAIN_MS,
                fired);
}

static bool is_off(const struct sandboxes *s)
{
    return s->reaper == NULL || s->reaper->stopping;
}

void sandbox_life_changed(struct sandbox *sb)
{
    struct lifespan_end end;
    if (is_off(sb->owner) || sb->gone || lifespan_is_none(&sb->life.rules)) {
        timer_stop(&sb->life.timer);
        return;
    }
    const struct lifespan_clock now = clock_of(sb->owner);
    int64_t at = INT64_MAX;
    if (next_end(sb, &now, &end))
        at = end.at_ms;
    /* One that is in use cannot have been idle for long enough any earlier than that. */
    if (sb->life.rules.idle_s != 0 && now.loop_ms + sb->life.rules.idle_s * 1000 < at &&
        sandbox_is_busy(sb))
        at = now.loop_ms + sb->life.rules.idle_s * 1000;
    if (at == INT64_MAX)
        timer_stop(&sb->life.timer);
    else
        arm(sb, at > sb->life.not_before_ms ? at : sb->life.not_before_ms);
}

void sandbox_life_forget(struct sandbox *sb)
{
    timer_stop(&sb->life.timer);
}

/* --- what happens to it --- */

void sandbox_used(struct sandbox *sb)
{
    if (!sandbox_is_monitor(sb)) /* which nobody waits for */
        sb->life.active_ms = loop_now(sb->owner->loop);
}

void sandbox_stream_begin(struct sandbox *sb)
{
    sb->life.streams++;
}

void sandbox_stream_end(struct sandbox *sb)
{
    sb->life.streams--;
    sandbox_used(sb);
}

void sandbox_set_lifespan(struct sandbox *sb, const struct lifespan *rules, bool renew)
{
    sb->life.rules = *rules;
    sb->life.stored = sb->life.stored || !lifespan_equal(rules, &(struct lifespan){0});
    if (renew)
        sb->life.ttl_from_ms = loop_now(sb->owner->loop);
    sandbox_used(sb);
    sandbox_life_changed(sb);
}

void sandbox_life_started(struct sandbox *sb)
{
    sb->life.ttl_from_ms = sb->life.active_ms = loop_now(sb->owner->loop);
    sb->life.not_before_ms = 0;
}

void sandbox_life_info(const struct sandbox *sb, struct sandbox_info *info)
{
    const struct lifespan_clock now = clock_of(sb->owner);
    struct lifespan_end end;
    bool busy = sandbox_is_busy(sb);
    info->lifespan = sb->life.rules;
    info->used_ms = to_wall(busy ? now.loop_ms : sb->life.active_ms, &now);
    if (sb->life.rules.idle_s != 0 && !busy)
        info->idle_since_ms = info->used_ms;
    if (next_end(sb, &now, &end))
        info->expires_ms = to_wall(end.at_ms, &now);
}

/* --- the store --- */

const struct store_lifespan *sandbox_life_row(const struct sandbox *sb, struct arena *arena)
{
    const struct lifespan_clock now = clock_of(sb->owner);
    const struct life *life = &sb->life;
    if (!life->stored)
        return NULL;
    struct store_lifespan *row = arena_alloc(arena, sizeof(*row));
    *row = (struct store_lifespan){
        .ttl_s = life->rules.ttl_s,
        .idle_s = life->rules.idle_s,
        .max_age_s = life->rules.max_age_s,
        .expires_ms = life->rules.expires_ms,
        .on_expire = lifespan_action_text(life->rules.on_expire),
        .wake = life->rules.wake,
        .ttl_from_ms = to_wall(life->ttl_from_ms, &now),
        .active_ms = to_wall(life->active_ms, &now),
    };
    return row;
}

/* How much later than the store says it can have been used. */
static int64_t unsaved_most_ms(const struct sandbox *sb)
{
    int64_t part = sb->life.rules.idle_s / SAVE_PARTS;
    return (part < SAVE_MOST_S ? part : SAVE_MOST_S) * 1000;
}

void sandbox_life_save(struct sandbox *sb)
{
    struct life *life = &sb->life;
    const struct lifespan_clock now = clock_of(sb->owner);
    struct error err;
    if (life->rules.idle_s == 0 || sb->gone ||
        life->active_ms - life->stored_active_ms <= unsaved_most_ms(sb))
        return;
    life->stored_active_ms = life->active_ms;
    if (store_use_sandbox(sb->owner->store, sb->id, to_wall(life->active_ms, &now), &err) < 0)
        log_warn("sandbox %s: recording its last use: %s", sb->id, err.message);
}

int sandbox_lifespan_of(const struct store_lifespan *row, struct lifespan *ret_rules,
                        struct error *err)
{
    struct lifespan rules = {.ttl_s = row->ttl_s,
                             .idle_s = row->idle_s,
                             .max_age_s = row->max_age_s,
                             .expires_ms = row->expires_ms,
                             .wake = row->wake};
    if (row->on_expire != NULL && lifespan_action_parse(row->on_expire, &rules.on_expire, err) < 0)
        return -1;
    *ret_rules = rules;
    return 0;
}

static int load_lifespan(void *ctx, const char *id, const struct store_lifespan *row,
                         struct error *err)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb;
    const struct lifespan_clock now = clock_of(s);
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    if (sb == NULL)
        return 0;
    struct life *life = &sb->life;
    if (sandbox_lifespan_of(row, &life->rules, err) < 0)
        return error_prefix(err, "sandbox %s in the database", id);
    int64_t unsaved = sb->status == SANDBOX_RUNNING
                          ? unsaved_most_ms(sb) + (int64_t)metrics_interval(s) * 1000
                          : 0; /* what does not run was written with its status */
    life->stored = true;
    life->ttl_from_ms = from_wall(row->ttl_from_ms, &now);
    life->active_ms = from_wall(row->active_ms + unsaved, &now);
    life->stored_active_ms = life->active_ms;
    return 0;
}

int sandboxes_load_lifespans(struct sandboxes *s, struct error *err)
{
    return store_load_lifespans(s->store, load_lifespan, s, err);
}

/* --- the reaper --- */

/* Whether what it uses is known, and so its last use right. Sets its timer when it is not. */
static bool look_inside(struct sandbox *sb)
{
    struct error err;
    bool known = false;
    if (sb->status != SANDBOX_RUNNING)
        return true;
    if (metrics_look(sb, &known, &err) < 0)
        log_debug("sandbox %s: whether it is idle: %s", sb->id, err.message);
    if (!known)
        arm(sb, loop_now(sb->owner->loop) + UNKNOWN_MS);
    return known;
}

static size_t hold_members(const struct group *group, struct sandbox ***ret_members)
{
    size_t count = 0;
    struct sandbox **members = calloc(group->member_count + 1, sizeof(struct sandbox *));
    if (members == NULL)
        abort();
    for (struct sandbox *sb = group->members; sb != NULL; sb = sb->group_next) {
        sandbox_hold(sb);
        members[count++] = sb;
    }
    *ret_members = members;
    return count;
}

/* Whether the others are as idle as this one. Sets its timer when they are not. */
static bool is_group_idle(struct sandbox *sb)
{
    struct sandbox **members;
    struct loop *loop = sb->owner->loop;
    const int64_t span = sb->life.rules.idle_s * 1000;
    int64_t until = 0;
    size_t count = hold_members(sb->group, &members);
    for (size_t i = 0; i < count; i++) {
        struct sandbox *other = members[i];
        int64_t now = loop_now(loop);
        if (!other->gone && other->status == SANDBOX_RUNNING && until <= now) {
            if (sandbox_is_busy(other))
                until = now + span;
            else if (!look_inside(other))
                until = now + UNKNOWN_MS;
            else if (other->life.active_ms + span > now)
                until = other->life.active_ms + span;
        }
        sandbox_drop(other);
    }
    free(members);
    if (until > loop_now(loop))
        arm(sb, until);
    return until <= loop_now(loop);
}

/* A group ends together: what one of its sandboxes comes to, all of them do. */
static void expire_group(struct sandbox *first, const struct lifespan_end *end, const char *why)
{
    struct sandbox **members;
    struct group_info info;
    struct error err;
    _cleanup_group_ struct group *group = first->group;
    group_hold(group);
    if (end->action == LIFESPAN_DELETE) {
        struct arena *arena = arena_new();
        if (groups_end(group->owner, group->workspace, group->id, "cella", arena, &info, &err) < 0)
            log_error("group %s: ending it: %s", group->name, err.message);
        arena_free(arena);
        return;
    }
    size_t count = hold_members(group, &members);
    for (size_t i = 0; i < count; i++) {
        if (!members[i]->gone && members[i]->status == SANDBOX_RUNNING)
            sandbox_expire(members[i], end, why);
        sandbox_drop(members[i]);
    }
    free(members);
}

static void deal_with(struct sandbox *sb)
{
    struct lifespan_end end;
    char why[LIFESPAN_WHY_SIZE];
    for (bool looked = false;; looked = true) {
        if (sb->gone || is_off(sb->owner))
            return;
        const struct lifespan_clock now = clock_of(sb->owner);
        if (now.loop_ms < sb->life.not_before_ms || !next_end(sb, &now, &end) ||
            end.at_ms > now.loop_ms) {
            sandbox_life_changed(sb);
            return;
        }
        if (end.rule != LIFESPAN_IDLE || looked)
            break;
        if (!look_inside(sb) || (sb->group != NULL && !is_group_idle(sb)))
            return;
    }
    sb->life.not_before_ms = loop_now(sb->owner->loop) + RETRY_MS;
    lifespan_why(&sb->life.rules, end.rule, why);
    log_info("sandbox %s (%s) is %s: %s", sb->id, sandbox_path(sb),
             lifespan_action_done(end.action), why);
    if (sb->group != NULL)
        expire_group(sb, &end, why);
    else
        sandbox_expire(sb, &end, why);
}

static size_t hold_all(struct sandboxes *s, struct sandbox ***ret_all)
{
    size_t count = 0;
    struct sandbox **all = calloc(HASH_CNT(by_id, s->ids) + 1, sizeof(struct sandbox *));
    if (all == NULL)
        abort();
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next)
        if (!lifespan_is_none(&sb->life.rules)) {
            sandbox_hold(sb);
            all[count++] = sb;
        }
    *ret_all = all;
    return count;
}

/* Ends by date are at another time of the loop's now, and what is stored is by the wall clock. */
static void follow_clock(struct reaper *r)
{
    struct sandbox **all;
    struct error err;
    size_t count = hold_all(r->sandboxes, &all);
    log_info("the clock was set: %zu ends of sandboxes are set anew", count);
    for (size_t i = 0; i < count; i++) {
        sandbox_life_changed(all[i]);
        if (!all[i]->gone && sandbox_save(all[i], false, &err) < 0)
            log_warn("sandbox %s: recording its state: %s", all[i]->id, err.message);
        sandbox_drop(all[i]);
    }
    free(all);
}

static void reaper_run(void *arg)
{
    struct reaper *r = arg;
    struct error err;
    while (!r->stopping) {
        struct sandbox *sb = dequeue(r);
        if (r->clock_set) {
            r->clock_set = false;
            follow_clock(r);
        }
        if (sb == NULL) {
            co_cond_wait(r->sandboxes->loop, &r->wake, -1, &err);
            continue;
        }
        deal_with(sb);
        sandbox_drop(sb);
    }
    for (struct sandbox *sb; (sb = dequeue(r)) != NULL;)
        sandbox_drop(sb);
    r->co = NULL;
    co_cond_wake_all(&r->ended);
}

/* A timer that never comes, and that the kernel breaks off when the clock is set (or the machine
 * wakes up, which is the same for us). */
static int watch_clock(struct reaper *r, struct error *err)
{
    const struct itimerspec never = {.it_value.tv_sec = time_now_ms() / 1000 + FAR_AWAY_S};
    if (timerfd_settime(r->clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0)
        return error_sys(err, "watching the clock");
    return 0;
}

static void clock_set(struct watch *watch, uint32_t events)
{
    struct reaper *r = container_of(watch, struct reaper, clock);
    struct error err;
    uint64_t times;
    (void)!read(r->clock_fd, &times, sizeof(times)); /* ECANCELED: that is the news */
    if (watch_clock(r, &err) < 0) {
        log_error("%s", err.message);
        watch_stop(&r->clock);
    }
    r->clock_set = true;
    co_cond_wake(&r->wake);
}

int reaper_start(struct sandboxes *s, struct error *err)
{
    struct reaper *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return error_sys(err, "allocating");
    r->sandboxes = s;
    r->last_due = &r->first_due;
    s->reaper = r;
    r->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (r->clock_fd < 0)
        return error_sys(err, "watching the clock");
    if (watch_clock(r, err) < 0 ||
        watch_start(s->loop, &r->clock, r->clock_fd, EPOLLIN, clock_set, err) < 0)
        return -1;
    struct sandbox **all;
    size_t count = hold_all(s, &all);
    for (size_t i = 0; i < count; i++) {
        deal_with(all[i]);
        sandbox_drop(all[i]);
    }
    free(all);
    return co_spawn(s->loop, reaper_run, r, &r->co, err);
}

void reaper_stop(struct sandboxes *s)
{
    struct reaper *r = s->reaper;
    struct error err;
    if (r == NULL)
        return;
    r->stopping = true;
    watch_stop(&r->clock);
    co_cond_wake_all(&r->wake);
    if (r->co != NULL)
        co_cancel(r->co);
    while (r->co != NULL)
        if (co_cond_wait(s->loop, &r->ended, -1, &err) < 0)
            break;
}

void reaper_free(struct sandboxes *s)
{
    struct reaper *r = s->reaper;
    if (r == NULL)
        return;
    s->reaper = NULL;
    watch_stop(&r->clock);
    cleanup_fd(&r->clock_fd);
    free(r);
}
