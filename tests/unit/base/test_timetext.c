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
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_extremes_fit),
        cmocka_unit_test(test_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
