/* SPDX-License-Identifier: Apache-2.0 */

/* Rules and ends, as a table of rules. See the header for what they mean. */

#include "sandbox/lifespan.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/limits.h"
#include "base/timetext.h"

enum { NOISE_PER_CORE = 100, NOISE_PER_LIMIT = 10 };

static const struct {
    const char *name;
    enum lifespan_action habit;
    size_t offset; /* of its value in struct lifespan */
} rules[LIFESPAN_RULES] = {
    [LIFESPAN_TTL] = {"ttl", LIFESPAN_DELETE, offsetof(struct lifespan, ttl_s)},
    [LIFESPAN_IDLE] = {"idleTimeout", LIFESPAN_STOP, offsetof(struct lifespan, idle_s)},
    [LIFESPAN_MAX_AGE] = {"maxAge", LIFESPAN_DELETE, offsetof(struct lifespan, max_age_s)},
    [LIFESPAN_EXPIRES] = {"expires", LIFESPAN_DELETE, offsetof(struct lifespan, expires_ms)},
};

static const struct {
    const char *text, *done;
} actions[] = {[LIFESPAN_AS_USUAL] = {NULL, NULL},
               [LIFESPAN_STOP] = {"stop", "stopped"},
               [LIFESPAN_PAUSE] = {"pause", "paused"},
               [LIFESPAN_DELETE] = {"delete", "deleted"}};

static int64_t *value_of(struct lifespan *span, enum lifespan_rule rule)
{
    return (int64_t *)((char *)span + rules[rule].offset);
}

static int64_t value(const struct lifespan *span, enum lifespan_rule rule)
{
    return *(const int64_t *)((const char *)span + rules[rule].offset);
}

const char *lifespan_rule_name(enum lifespan_rule rule)
{
    return rules[rule].name;
}

const char *lifespan_action_text(enum lifespan_action action)
{
    return actions[action].text;
}

const char *lifespan_action_done(enum lifespan_action action)
{
    return actions[action].done;
}

int lifespan_action_parse(const char *text, enum lifespan_action *ret_action, struct error *err)
{
    for (size_t i = LIFESPAN_STOP; i < ARRAY_LEN(actions); i++)
        if (strcmp(actions[i].text, text) == 0) {
            *ret_action = (enum lifespan_action)i;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "spec.lifecycle.onExpire: \"%.40s\" is none of \"stop\", \"pause\" and "
                     "\"delete\"",
                     text);
}

bool lifespan_is_none(const struct lifespan *span)
{
    for (int rule = 0; rule < LIFESPAN_RULES; rule++)
        if (value(span, rule) != 0)
            return false;
    return true;
}

bool lifespan_equal(const struct lifespan *a, const struct lifespan *b)
{
    for (int rule = 0; rule < LIFESPAN_RULES; rule++)
        if (value(a, rule) != value(b, rule))
            return false;
    return a->on_expire == b->on_expire && a->wake == b->wake;
}

/* --- reading and checking --- */

static int check_span(int64_t seconds, enum lifespan_rule rule, struct error *err)
{
    char least[DURATION_TEXT_SIZE], most[DURATION_TEXT_SIZE], given[DURATION_TEXT_SIZE];
    if (seconds >= LIFESPAN_MIN_S && seconds <= LIFESPAN_MAX_S)
        return 0;
    duration_text(LIFESPAN_MIN_S, least);
    duration_text(LIFESPAN_MAX_S, most);
    duration_text((uint64_t)seconds, given);
    return error_set(err, ERROR_INVALID_DURATION,
                     "spec.lifecycle.%s: %s is not from %s to %s; null, or leaving it out, is none",
                     rules[rule].name, given, least, most);
}

int lifespan_parse_span(const char *text, enum lifespan_rule rule, int64_t *ret_seconds,
                        struct error *err)
{
    uint64_t seconds;
    struct error why;
    if (duration_seconds(text, &seconds, &why) < 0)
        return error_set(err, ERROR_INVALID_DURATION, "spec.lifecycle.%s: %s", rules[rule].name,
                         why.message);
    if (check_span((int64_t)seconds, rule, err) < 0)
        return -1;
    *ret_seconds = (int64_t)seconds;
    return 0;
}

/* The end of those that go by the wall clock. */
static int64_t wall_end(const struct lifespan *span, enum lifespan_rule rule, int64_t created_ms)
{
    return rule == LIFESPAN_EXPIRES ? span->expires_ms : created_ms + span->max_age_s * 1000;
}

static int check_not_over(const struct lifespan *span, enum lifespan_rule rule, int64_t created_ms,
                          int64_t wall_now_ms, struct error *err)
{
    char end[TIME_TEXT_SIZE];
    if (value(span, rule) == 0 || wall_end(span, rule, created_ms) > wall_now_ms)
        return 0;
    time_rfc3339(wall_end(span, rule, created_ms), end);
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "spec.lifecycle.%s: %s is past; to end the sandbox now, stop or delete it",
                     rules[rule].name, end);
}

static int check_max_age(const struct lifespan *before, const struct lifespan *after,
                         bool may_extend, struct error *err)
{
    char had[DURATION_TEXT_SIZE];
    if (may_extend || before->max_age_s == 0 ||
        (after->max_age_s != 0 && after->max_age_s <= before->max_age_s))
        return 0;
    duration_text((uint64_t)before->max_age_s, had);
    return error_set(err, ERROR_FORBIDDEN,
                     "spec.lifecycle.maxAge: raising it from %s, or removing it, needs the scope "
                     "admin; it can be lowered",
                     had);
}

int lifespan_merge(const struct lifespan *before, const struct lifespan_change *change,
                   int64_t created_ms, int64_t wall_now_ms, bool may_extend,
                   struct lifespan *ret_after, struct error *err)
{
    struct lifespan after = *before;
    int64_t from = created_ms == 0 ? wall_now_ms : created_ms;
    for (int rule = 0; rule < LIFESPAN_RULES; rule++) {
        if (!(change->sets & 1u << rule))
            continue;
        int64_t to = value(&change->to, rule);
        *value_of(&after, rule) = to;
        if (to != 0 && rule != LIFESPAN_EXPIRES && check_span(to, rule, err) < 0)
            return -1;
        if ((rule == LIFESPAN_EXPIRES || rule == LIFESPAN_MAX_AGE) && to != value(before, rule) &&
            check_not_over(&after, rule, from, wall_now_ms, err) < 0)
            return -1;
    }
    if (change->sets & LIFESPAN_SETS_ACTION)
        after.on_expire = change->to.on_expire;
    if (change->sets & LIFESPAN_SETS_WAKE)
        after.wake = change->to.wake;
    if (check_max_age(before, &after, may_extend, err) < 0)
        return -1;
    *ret_after = after;
    return 0;
}

/* --- ends --- */

static enum lifespan_action action_of(const struct lifespan *span, enum lifespan_rule rule)
{
    return span->on_expire == LIFESPAN_AS_USUAL ? rules[rule].habit : span->on_expire;
}

static int64_t end_of(const struct lifespan *span, enum lifespan_rule rule,
                      const struct lifespan_facts *facts, const struct lifespan_clock *now)
{
    int64_t created = facts->created_ms < now->wall_ms ? facts->created_ms : now->wall_ms;
    switch (rule) {
    case LIFESPAN_TTL:
        return facts->ttl_from_ms + span->ttl_s * 1000;
    case LIFESPAN_IDLE:
        return facts->active_ms + span->idle_s * 1000;
    default:
        return now->loop_ms + (wall_end(span, rule, created) - now->wall_ms);
    }
}

bool lifespan_next(const struct lifespan *span, const struct lifespan_facts *facts,
                   const struct lifespan_clock *now, struct lifespan_end *ret_end)
{
    bool found = false;
    for (int rule = 0; rule < LIFESPAN_RULES; rule++) {
        if (value(span, rule) == 0 || (rule == LIFESPAN_IDLE && facts->busy))
            continue;
        const struct lifespan_end end = {rule, action_of(span, rule),
                                         end_of(span, rule, facts, now)};
        if (end.action != LIFESPAN_DELETE && !facts->running)
            continue;
        if (!found || end.at_ms < ret_end->at_ms)
            *ret_end = end;
        found = true;
    }
    return found;
}

bool lifespan_is_over(const struct lifespan *span, int64_t created_ms, int64_t wall_now_ms,
                      enum lifespan_rule *ret_rule)
{
    for (int rule = LIFESPAN_MAX_AGE; rule <= LIFESPAN_EXPIRES; rule++)
        if (value(span, rule) != 0 && wall_end(span, rule, created_ms) <= wall_now_ms) {
            *ret_rule = rule;
            return true;
        }
    return false;
}

bool lifespan_is_noise(uint64_t cpu_usec, uint64_t elapsed_usec, uint64_t limit_millis)
{
    uint64_t least = elapsed_usec / NOISE_PER_CORE;
    uint64_t of_limit = elapsed_usec / 1000 * limit_millis / NOISE_PER_LIMIT;
    return cpu_usec < (of_limit < least ? of_limit : least);
}

void lifespan_why(const struct lifespan *span, enum lifespan_rule rule, char out[LIFESPAN_WHY_SIZE])
{
    char date[TIME_TEXT_SIZE], length[DURATION_TEXT_SIZE];
    if (rule == LIFESPAN_EXPIRES) {
        time_rfc3339(span->expires_ms, date);
        snprintf(out, LIFESPAN_WHY_SIZE, "its date, %s, has come", date);
        return;
    }
    duration_text((uint64_t)value(span, rule), length);
    snprintf(out, LIFESPAN_WHY_SIZE, "%s of %s is over", rules[rule].name, length);
}
