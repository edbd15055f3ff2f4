/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How long a sandbox lives: rules, and the end that follows from them. Nothing here knows clocks,
 * timers or stores: whoever asks brings the time.
 *
 *   ttl       from the last time that it was set, or that the sandbox started
 *   idle      from the last time that anybody, or anything in it, used the sandbox
 *   max age   from its making; setting a ttl again does not go past it
 *   expires   at a date
 *
 * Whichever comes first counts. What happens then is one choice for all of them, or each rule's own
 * habit: an idle sandbox is stopped (its files stay, and it can be started again), one whose time
 * is over is deleted. An end that deletes comes for stopped and paused sandboxes too; one that
 * stops or pauses has nothing to do with them, and begins anew when they run again.
 *
 * One that is stopped can be woken by whoever connects to a port of it, and one that is paused by
 * whoever uses it, where that is set: a setting, not a rule, and it ends nothing.
 *
 * Two clocks: spans are measured by the loop's, which never jumps, so that setting the machine's
 * clock neither ends a sandbox early nor keeps it for years. Age and date are wall-clock facts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum lifespan_action { LIFESPAN_AS_USUAL, LIFESPAN_STOP, LIFESPAN_PAUSE, LIFESPAN_DELETE };

enum lifespan_rule {
    LIFESPAN_TTL,
    LIFESPAN_IDLE,
    LIFESPAN_MAX_AGE,
    LIFESPAN_EXPIRES,
    LIFESPAN_RULES,
};

struct lifespan {
    int64_t ttl_s, idle_s, max_age_s; /* 0: none */
    int64_t expires_ms;               /* Unix time; 0: none */
    enum lifespan_action on_expire;
    bool wake; /* a connection to one of its ports starts it */
};

/* A change names what it sets, in bits (1 << rule; LIFESPAN_SETS_…); the rest stays. */
enum {
    LIFESPAN_SETS_ACTION = 1 << LIFESPAN_RULES,
    LIFESPAN_SETS_WAKE = 2 << LIFESPAN_RULES,
    LIFESPAN_SETS_ALL = (4 << LIFESPAN_RULES) - 1
};
struct lifespan_change {
    unsigned sets;
    struct lifespan to;
};

struct lifespan_clock {
    int64_t loop_ms, wall_ms; /* the same moment on both */
};

/* What the end depends on besides the rules. */
struct lifespan_facts {
    bool running;
    bool busy;           /* in use right now: it does not count as idle */
    int64_t created_ms;  /* wall clock; one in the future counts as now */
    int64_t ttl_from_ms; /* the loop's clock, and so below */
    int64_t active_ms;
};

struct lifespan_end {
    enum lifespan_rule rule;
    enum lifespan_action action; /* stop, pause or delete */
    int64_t at_ms;               /* the loop's clock */
};

/* "ttl", "idleTimeout", "maxAge", "expires". */
const char *lifespan_rule_name(enum lifespan_rule rule);
/* "stop", "pause", "delete"; NULL for the usual. INVALID_ARGUMENT names all. */
const char *lifespan_action_text(enum lifespan_action action);
/* "stopped", "paused", "deleted". */
const char *lifespan_action_done(enum lifespan_action action);
int lifespan_action_parse(const char *text, enum lifespan_action *ret_action, struct error *err);

bool lifespan_is_none(const struct lifespan *span); /* no rule at all */
bool lifespan_equal(const struct lifespan *a, const struct lifespan *b);

/* "30m", "1h30m", "1800": a span for this rule. INVALID_DURATION names the field, and the shortest
 * and longest that there are. */
int lifespan_parse_span(const char *text, enum lifespan_rule rule, int64_t *ret_seconds,
                        struct error *err);

/*
 * The rules with a change made. INVALID_DURATION: a span out of bounds; INVALID_ARGUMENT: a date,
 * or a new max age, that is over already (created_ms: 0 for what is yet to be made). FORBIDDEN: a
 * max age that was there is raised or removed, and may_extend is false.
 */
int lifespan_merge(const struct lifespan *before, const struct lifespan_change *change,
                   int64_t created_ms, int64_t wall_now_ms, bool may_extend,
                   struct lifespan *ret_after, struct error *err);

/* The end that comes first; false: there is none as things are. It may be past. */
bool lifespan_next(const struct lifespan *span, const struct lifespan_facts *facts,
                   const struct lifespan_clock *now, struct lifespan_end *ret_end);

/* Whether its age or date is over, so that it is not to be started any more. */
bool lifespan_is_over(const struct lifespan *span, int64_t created_ms, int64_t wall_now_ms,
                      enum lifespan_rule *ret_rule);

/* cpu time that says nothing: a hundredth of a core, or a tenth of a limit that is smaller. */
bool lifespan_is_noise(uint64_t cpu_usec, uint64_t elapsed_usec, uint64_t limit_millis);

/* What is told of an end: "ttl of 30m is over". */
enum { LIFESPAN_WHY_SIZE = 96 };
void lifespan_why(const struct lifespan *span, enum lifespan_rule rule,
                  char out[LIFESPAN_WHY_SIZE]);
