/* SPDX-License-Identifier: Apache-2.0 */

#include "observe/trace_context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"

static void right_parents(void **state)
{
    static const struct {
        const char *text, *again;
    } rows[] = {
        {"00-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"},
        {"00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00"},
        {"00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-01"}, /* other bits are not ours */
        {"cc-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"}, /* of a version to come … */
        {"cc-" TRACE "-" SPAN "-01-what", "00-" TRACE "-" SPAN "-01"}, /* … with more in it */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct errand errand = {0};
        char text[TRACEPARENT_LEN + 1];
        assert_true(trace_parent_parse(rows[i].text, &errand));
        assert_true(errand.traced);
        trace_parent_text(&errand, text);
        assert_string_equal(text, rows[i].again);
    }
}

static void wrong_parents(void **state)
{
    static const char *const rows[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN,
        "00-" TRACE "-" SPAN "-",
        "00-" TRACE "-" SPAN "-1",
        "00-" TRACE "-" SPAN "-01-",
        "00-" TRACE "-" SPAN "-01-more",
        "00-" TRACE "-" SPAN "-01 ",
        " 00-" TRACE "-" SPAN "-01",
        "cc-" TRACE "-" SPAN "-01.more",
        "ff-" TRACE "-" SPAN "-01",
        "0-" TRACE "-" SPAN "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-" TRACE "-00f067aa0ba902bg-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct errand errand = {0}, before = {0};
        assert_false(trace_parent_parse(rows[i], &errand));
        assert_memory_equal(&errand, &before, sizeof(errand));
    }
}

static void right_states(void **state)
{
    static const struct {
        const char *text, *again;
    } rows[] = {
        {"a=1", "a=1"},
        {" a=1 , b=2\t", "a=1,b=2"},
        {"a=1,,b=2,", "a=1,b=2"},
        {"1tenant@vendor=x y", "1tenant@vendor=x y"},
        {"a_-*/9=!#", "a_-*/9=!#"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct errand errand = {0};
        assert_true(trace_state_add(rows[i].text, &errand));
        assert_string_equal(errand.tracestate, rows[i].again);
        assert_int_equal(errand.tracestate_len, strlen(rows[i].again));
    }
    struct errand errand = {0};
    assert_true(trace_state_add("a=1", &errand) && trace_state_add("b=2", &errand));
    assert_string_equal(errand.tracestate, "a=1,b=2");
}

static void wrong_states(void **state)
{
    static const char *const rows[] = {
        "a",       "a=",   "=1",   "A=1",   "1a=1",   "a=1=2",
        "a=1,a=2", "a@=1", "@a=1", "a@1=2", "a=\x7f", "a b=1",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct errand errand = {0};
        assert_false(trace_state_add(rows[i], &errand));
        assert_int_equal(errand.tracestate_len, 0);
        assert_string_equal(errand.tracestate, "");
    }
}

static void bounds_of_states(void **state)
{
    struct errand errand = {0};
    char member[600] = "a=";
    memset(member + 2, 'x', 256);
    assert_true(trace_state_add(member, &errand));
    memset(member + 2, 'x', 257);
    memset(&errand, 0, sizeof(errand));
    assert_false(trace_state_add(member, &errand));
    /* 33 members */
    char many[200] = "";
    for (int i = 0; i < 33; i++) {
        char one[8] = {(char)('a' + i / 26), (char)('a' + i % 26), '=', '1', ','};
        memcpy(many + strlen(many), one, 6);
    }
    memset(&errand, 0, sizeof(errand));
    assert_false(trace_state_add(many, &errand));
    /* more than is passed on */
    memset(&errand, 0, sizeof(errand));
    memset(member + 2, 'x', 250);
    member[252] = '\0';
    assert_true(trace_state_add(member, &errand));
    member[0] = 'b';
    assert_true(trace_state_add(member, &errand));
    member[0] = 'c';
    assert_false(trace_state_add(member, &errand));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_parents),    cmocka_unit_test(wrong_parents),
        cmocka_unit_test(right_states),     cmocka_unit_test(wrong_states),
        cmocka_unit_test(bounds_of_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
