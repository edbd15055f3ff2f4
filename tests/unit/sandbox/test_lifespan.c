/* SPDX-License-Identifier: Apache-2.0 */

/* Which end comes first, and what may be asked for, with clocks that the test holds. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/lifespan.h"

enum { S = 1000 };
#define WALL INT64_C(1700000000000)

/* The loop's clock says 1000 s, and the sandbox was made 500 s ago. */
static const struct lifespan_clock now = {.loop_ms = 1000 * S, .wall_ms = WALL};
static const struct lifespan_facts facts = {
    .running = true,
    .created_ms = WALL - 500 * S,
    .ttl_from_ms = 900 * S,
    .active_ms = 950 * S,
};

static void test_which_comes_first(void **state)
{
    static const struct {
        struct lifespan span;
        enum lifespan_rule rule;
        enum lifespan_action action;
        int64_t at_s;
    } rows[] = {
        {{.ttl_s = 200}, LIFESPAN_TTL, LIFESPAN_DELETE, 1100},
        {{.ttl_s = 50}, LIFESPAN_TTL, LIFESPAN_DELETE, 950}, /* over */
        {{.idle_s = 60}, LIFESPAN_IDLE, LIFESPAN_STOP, 1010},
        {{.max_age_s = 600}, LIFESPAN_MAX_AGE, LIFESPAN_DELETE, 1100},
        {{.expires_ms = WALL + 7 * S}, LIFESPAN_EXPIRES, LIFESPAN_DELETE, 1007},
        {{.expires_ms = S}, LIFESPAN_EXPIRES, LIFESPAN_DELETE, 1001 - WALL / S},
        {{.ttl_s = 200, .on_expire = LIFESPAN_STOP}, LIFESPAN_TTL, LIFESPAN_STOP, 1100},
        {{.idle_s = 60, .on_expire = LIFESPAN_DELETE}, LIFESPAN_IDLE, LIFESPAN_DELETE, 1010},
        /* A ttl does not go past the max age. */
        {{.ttl_s = 5000, .max_age_s = 600}, LIFESPAN_MAX_AGE, LIFESPAN_DELETE, 1100},
        {{.ttl_s = 150, .idle_s = 60, .max_age_s = 600}, LIFESPAN_IDLE, LIFESPAN_STOP, 1010},
        {{.ttl_s = LIFESPAN_MAX_S}, LIFESPAN_TTL, LIFESPAN_DELETE, 900 + (int64_t)LIFESPAN_MAX_S},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct lifespan_end end;
        assert_true(lifespan_next(&rows[i].span, &facts, &now, &end));
        assert_int_equal(end.rule, rows[i].rule);
        assert_int_equal(end.action, rows[i].action);
        assert_int_equal(end.at_ms / S, rows[i].at_s);
    }
}

static void test_no_end(void **state)
{
    struct lifespan_end end;
    struct lifespan_facts busy = facts, stopped = facts;
    const struct lifespan none = {.on_expire = LIFESPAN_DELETE}, idle = {.idle_s = 60};
    assert_true(lifespan_is_none(&none));
    assert_false(lifespan_next(&none, &facts, &now, &end));
    busy.busy = true;
    assert_false(lifespan_next(&idle, &busy, &now, &end));
    stopped.running = false;
    assert_false(lifespan_next(&idle, &stopped, &now, &end));
    assert_false(lifespan_next(&(struct lifespan){.ttl_s = 1, .on_expire = LIFESPAN_STOP}, &stopped,
                               &now, &end));
    assert_false(lifespan_next(&(struct lifespan){.ttl_s = 1, .on_expire = LIFESPAN_PAUSE},
                               &stopped, &now, &end));
    /* What deletes comes for stopped ones too. */
    assert_true(
        lifespan_next(&(struct lifespan){.ttl_s = 200, .idle_s = 60}, &stopped, &now, &end));
    assert_int_equal(end.rule, LIFESPAN_TTL);
    assert_true(lifespan_next(&(struct lifespan){.idle_s = 60, .on_expire = LIFESPAN_DELETE},
                              &stopped, &now, &end));
}

/* Somebody sets the machine's clock: spans do not move, ages and dates do. */
static void test_clock_jumps(void **state)
{
    static const int64_t jumps_s[] = {-100000, -3600, 0, 3600, 100000};
    for (size_t i = 0; i < ARRAY_LEN(jumps_s); i++) {
        const struct lifespan_clock jumped = {now.loop_ms, WALL + jumps_s[i] * S};
        struct lifespan_end end;
        assert_true(lifespan_next(&(struct lifespan){.ttl_s = 200}, &facts, &jumped, &end));
        assert_int_equal(end.at_ms, 1100 * S);
        assert_true(lifespan_next(&(struct lifespan){.idle_s = 60}, &facts, &jumped, &end));
        assert_int_equal(end.at_ms, 1010 * S);
        assert_true(
            lifespan_next(&(struct lifespan){.expires_ms = WALL + 7 * S}, &facts, &jumped, &end));
        assert_int_equal(end.at_ms, (1007 - jumps_s[i]) * S);
        /* Made in what is the future now: it does not get older than it was to be. */
        assert_true(lifespan_next(&(struct lifespan){.max_age_s = 600}, &facts, &jumped, &end));
        assert_true(end.at_ms <= now.loop_ms + 600 * S);
    }
}

static int merge(struct lifespan before, struct lifespan_change change, bool may_extend,
                 struct lifespan *after, struct error *err)
{
    return lifespan_merge(&before, &change, WALL - 500 * S, WALL, may_extend, after, err);
}

static void test_changes(void **state)
{
    struct lifespan after;
    struct error err;
    const struct lifespan before = {.ttl_s = 5, .idle_s = 6, .max_age_s = 700, .expires_ms = 1};
    assert_int_equal(merge(before, (struct lifespan_change){0}, false, &after, &err), 0);
    assert_true(lifespan_equal(&before, &after)); /* a date that is past and was there stays */
    struct lifespan_change change = {.sets = 1u << LIFESPAN_IDLE | LIFESPAN_SETS_ACTION,
                                     .to = {.ttl_s = 99, .on_expire = LIFESPAN_STOP}};
    assert_int_equal(merge(before, change, false, &after, &err), 0);
    assert_int_equal(after.ttl_s, 5);
    assert_int_equal(after.idle_s, 0);
    assert_int_equal(after.on_expire, LIFESPAN_STOP);
    change = (struct lifespan_change){.sets = LIFESPAN_SETS_ALL, .to = {.max_age_s = 600}};
    assert_int_equal(merge(before, change, false, &after, &err), 0);
    assert_true(lifespan_equal(&change.to, &after));
}

static void test_changes_refused(void **state)
{
    static const struct {
        struct lifespan_change change;
        enum error_code code;
        const char *names;
    } rows[] = {
        {{1 << LIFESPAN_TTL, {.ttl_s = (int64_t)LIFESPAN_MAX_S + 1}},
         ERROR_INVALID_DURATION,
         "ttl"},
        {{1 << LIFESPAN_IDLE, {.idle_s = -1}}, ERROR_INVALID_DURATION, "idleTimeout"},
        {{1 << LIFESPAN_MAX_AGE, {.max_age_s = 500}}, ERROR_INVALID_ARGUMENT, "maxAge"},
        {{1 << LIFESPAN_EXPIRES, {.expires_ms = WALL}}, ERROR_INVALID_ARGUMENT, "expires"},
        {{1 << LIFESPAN_MAX_AGE, {.max_age_s = 701}}, ERROR_FORBIDDEN, "maxAge"},
        {{1 << LIFESPAN_MAX_AGE, {.max_age_s = 0}}, ERROR_FORBIDDEN, "maxAge"},
    };
    const struct lifespan before = {.max_age_s = 700};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct lifespan after = {.ttl_s = 42};
        struct error err;
        assert_int_equal(merge(before, rows[i].change, false, &after, &err), -1);
        assert_int_equal(err.code, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].names));
        assert_int_equal(after.ttl_s, 42);
        if (rows[i].code == ERROR_FORBIDDEN)
            assert_int_equal(merge(before, rows[i].change, true, &after, &err), 0);
    }
}

static void test_spans(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1: refused */
    } rows[] = {
        {"1", 1},    {"30m", 1800}, {"1h30m", 5400},   {"3650d", 315360000},
        {"0", -1},   {"3651d", -1}, {"315360001", -1}, {"", -1},
        {"-5m", -1}, {"1.5", -1},   {"soon", -1},      {"9223372036854775807w", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t seconds = -1;
        struct error err;
        int rc = lifespan_parse_span(rows[i].text, LIFESPAN_IDLE, &seconds, &err);
        assert_int_equal(rc, rows[i].seconds < 0 ? -1 : 0);
        assert_int_equal(seconds, rows[i].seconds);
        if (rc == 0)
            continue;
        assert_int_equal(err.code, ERROR_INVALID_DURATION);
        assert_non_null(strstr(err.message, "spec.lifecycle.idleTimeout"));
    }
}

static void test_over(void **state)
{
    enum lifespan_rule rule;
    const struct lifespan span = {.ttl_s = 1, .max_age_s = 10};
    assert_false(lifespan_is_over(&span, WALL, WALL + 9999, &rule));
    assert_true(lifespan_is_over(&span, WALL, WALL + 10 * S, &rule));
    assert_int_equal(rule, LIFESPAN_MAX_AGE);
    assert_true(lifespan_is_over(&(struct lifespan){.expires_ms = WALL}, WALL, WALL, &rule));
    assert_int_equal(rule, LIFESPAN_EXPIRES);
}

static void test_noise(void **state)
{
    /* Ten seconds, and a core: a tenth of a second is something. */
    assert_true(lifespan_is_noise(0, 10000000, 1000));
    assert_true(lifespan_is_noise(99999, 10000000, 1000));
    assert_false(lifespan_is_noise(100000, 10000000, 1000));
    assert_true(lifespan_is_noise(99999, 10000000, 8000));
    /* A limit of a hundredth of a core: a tenth of that. */
    assert_true(lifespan_is_noise(9999, 10000000, 10));
    assert_false(lifespan_is_noise(10000, 10000000, 10));
}

static void test_words(void **state)
{
    char why[LIFESPAN_WHY_SIZE];
    enum lifespan_action action;
    struct error err;
    lifespan_why(&(struct lifespan){.ttl_s = 5400}, LIFESPAN_TTL, why);
    assert_string_equal(why, "ttl of 1h30m is over");
    lifespan_why(&(struct lifespan){.expires_ms = 1696951800000}, LIFESPAN_EXPIRES, why);
    assert_string_equal(why, "its date, 2023-10-10T15:30:00Z, has come");
    assert_int_equal(lifespan_action_parse("delete", &action, &err), 0);
    assert_int_equal(action, LIFESPAN_DELETE);
    assert_int_equal(lifespan_action_parse("pause", &action, &err), 0);
    assert_int_equal(action, LIFESPAN_PAUSE);
    assert_string_equal(lifespan_action_done(action), "paused");
    assert_int_equal(lifespan_action_parse("sleep", &action, &err), -1);
    assert_non_null(strstr(err.message, "onExpire"));
    assert_null(lifespan_action_text(LIFESPAN_AS_USUAL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_comes_first),
        cmocka_unit_test(test_no_end),
        cmocka_unit_test(test_clock_jumps),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_changes_refused),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_over),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
