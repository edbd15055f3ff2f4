/* SPDX-License-Identifier: Apache-2.0 */

#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void right_ones(void **state)
{
    static const struct {
        const char *text;
        uint64_t seconds;
    } rows[] = {
        {"0", 0},
        {"60", 60},
        {"30s", 30},
        {"15m", 900},
        {"1h", 3600},
        {"24h", 86400},
        {"7d", 604800},
        {"1w", 604800},
        {"1h30m", 5400},
        {"1d1h1m1s", 90061},
        {"007s", 7},
        {"0s", 0},
        {"9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t seconds = 1;
        assert_int_equal(duration_seconds(rows[i].text, &seconds, NULL), 0);
        assert_true(seconds == rows[i].seconds);
    }
}

static void wrong_ones(void **state)
{
    static const char *const rows[] = {"",
                                       "s",
                                       "1x",
                                       "1.5h",
                                       "-1s",
                                       "+1s",
                                       " 1s",
                                       "1s ",
                                       "1 s",
                                       "1h30",
                                       "1hh",
                                       "h1",
                                       "1H",
                                       "0x10",
                                       "1e3",
                                       "∞",
                                       "1ms",
                                       "9223372036854775808",
                                       "99999999999999999999999s",
                                       "9223372036854775807w"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t seconds = 42;
        struct error err = {0};
        assert_int_equal(duration_seconds(rows[i], &seconds, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "15m")); /* shows a right one */
        assert_int_equal(seconds, 42);
    }
}

static void as_text(void **state)
{
    static const struct {
        uint64_t seconds;
        const char *text;
    } rows[] = {
        {0, "0s"},           {1, "1s"},
        {60, "1m"},          {90, "1m30s"},
        {3600, "1h"},        {5400, "1h30m"},
        {86400, "1d"},       {604800, "7d"},
        {90061, "1d1h1m1s"}, {UINT64_MAX, "213503982334601d7h15s"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[DURATION_TEXT_SIZE];
        duration_text(rows[i].seconds, text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_ones),
        cmocka_unit_test(wrong_ones),
        cmocka_unit_test(as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
