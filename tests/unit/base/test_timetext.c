/* SPDX-License-Identifier: Apache-2.0 */

#include "base/timetext.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "base/cleanup.h"

static void test_rows(void **state)
{
    static const struct {
        int64_t ms;
        const char *rfc3339;
        const char *http;
    } rows[] = {
        {0, "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {999, "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {-1, "1969-12-31T23:59:59Z", "Wed, 31 Dec 1969 23:59:59 GMT"},
        {-1000, "1969-12-31T23:59:59Z", "Wed, 31 Dec 1969 23:59:59 GMT"},
        {1696951800000, "2023-10-10T15:30:00Z", "Tue, 10 Oct 2023 15:30:00 GMT"},
        {1709164799999, "2024-02-28T23:59:59Z", "Wed, 28 Feb 2024 23:59:59 GMT"},
        {1709164800000, "2024-02-29T00:00:00Z", "Thu, 29 Feb 2024 00:00:00 GMT"},
        {4102444800000, "2100-01-01T00:00:00Z", "Fri, 01 Jan 2100 00:00:00 GMT"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[TIME_TEXT_SIZE];
        time_rfc3339(rows[i].ms, out);
        assert_string_equal(out, rows[i].rfc3339);
        time_http(rows[i].ms, out);
        assert_string_equal(out, rows[i].http);
    }
}

static void test_reading(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2023-10-10T15:30:00Z", 1696951800000},
        {"2023-10-10t15:30:00z", 1696951800000},
        {"2023-10-10T15:30:00.5Z", 1696951800500},
        {"2023-10-10T15:30:00.497Z", 1696951800497},
        {"2023-10-10T15:30:00.4979999Z", 1696951800497},
        {"2023-10-10T17:30:00+02:00", 1696951800000},
        {"2023-10-10T10:00:00-05:30", 1696951800000},
        {"2024-02-29T00:00:00Z", 1709164800000},
        {"1969-12-31T23:59:59Z", -1000},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ms = 1;
        struct error err = {0};
        if (time_parse_rfc3339(rows[i].text, &ms, &err) < 0)
            fail_msg("%s", err.message);
        assert_int_equal(ms, rows[i].ms);
    }
}

static void test_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "now",
        "2023-10-10",
        "2023-10-10T15:30:00",
        "2023-10-10 15:30:00Z",
        "2023-13-10T15:30:00Z",
        "2023-00-10T15:30:00Z",
        "2023-02-29T15:30:00Z",
        "2023-10-10T24:00:00Z",
        "2023-10-10T15:60:00Z",
        "2023-10-10T15:30:60Z",
        "2023-10-10T15:30:00.Z",
        "2023-10-10T15:30:00+2:00",
        "2023-10-10T15:30:00+24:00",
        "2023-10-10T15:30:00Zjunk",
        "-023-10-10T15:30:00Z",
        "1696951800",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ms = 1;
        struct error err = {0};
        assert_int_equal(time_parse_rfc3339(rows[i], &ms, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_int_equal(ms, 1);
    }
}

static void test_extremes_fit(void **state)
{
    char out[TIME_TEXT_SIZE];
    time_rfc3339(INT64_MAX, out);
    assert_int_equal(out[strlen(out) - 1], 'Z');
    time_http(INT64_MIN, out);
    assert_non_null(strstr(out, " GMT"));
}

static void test_now(void **state)
{
    int64_t before = (int64_t)time(NULL) * 1000;
    int64_t now = time_now_ms();
    assert_true(now >= before - 1000 && now <= before + 60 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_extremes_fit),
        cmocka_unit_test(test_reading), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
