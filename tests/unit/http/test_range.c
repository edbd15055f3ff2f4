/* SPDX-License-Identifier: Apache-2.0 */

/* Range fields against a content of ten bytes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "http/range.h"

static void test_rows(void **state)
{
    static const struct {
        const char *value;
        enum http_range_kind kind;
        uint64_t offset, length;
    } rows[] = {
        {NULL, HTTP_RANGE_NONE, 0, 0},
        {"", HTTP_RANGE_NONE, 0, 0},
        {"bytes=0-0", HTTP_RANGE_PART, 0, 1},
        {"bytes=0-9", HTTP_RANGE_PART, 0, 10},
        {"bytes=0-99", HTTP_RANGE_PART, 0, 10},
        {"bytes=9-", HTTP_RANGE_PART, 9, 1},
        {"Bytes= 2-3 ", HTTP_RANGE_PART, 2, 2},
        {"bytes=-3", HTTP_RANGE_PART, 7, 3},
        {"bytes=-30", HTTP_RANGE_PART, 0, 10},
        {"bytes=10-", HTTP_RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=10-20", HTTP_RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=-0", HTTP_RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=3-2", HTTP_RANGE_NONE, 0, 0},
        {"bytes=0-1,3-4", HTTP_RANGE_NONE, 0, 0},
        {"bytes=", HTTP_RANGE_NONE, 0, 0},
        {"bytes=-", HTTP_RANGE_NONE, 0, 0},
        {"bytes=a-b", HTTP_RANGE_NONE, 0, 0},
        {"bytes=1", HTTP_RANGE_NONE, 0, 0},
        {"bytes=1-2x", HTTP_RANGE_NONE, 0, 0},
        {"lines=1-2", HTTP_RANGE_NONE, 0, 0},
        {"bytes=99999999999999999999-", HTTP_RANGE_NONE, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_range range = {0, 0};
        assert_int_equal(http_range_parse(rows[i].value, 10, &range), rows[i].kind);
        assert_int_equal(range.offset, rows[i].offset);
        assert_int_equal(range.length, rows[i].length);
    }
}

static void test_empty_content(void **state)
{
    struct http_range range;
    assert_int_equal(http_range_parse("bytes=0-", 0, &range), HTTP_RANGE_UNSATISFIABLE);
    assert_int_equal(http_range_parse("bytes=-1", 0, &range), HTTP_RANGE_UNSATISFIABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_empty_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
