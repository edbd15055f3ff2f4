/* SPDX-License-Identifier: Apache-2.0 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void test_empty(void **state)
{
    struct buf b = BUF_INIT(10);
    assert_string_equal(b.data, "");
    buf_add(&b, NULL, 0);
    buf_adds(&b, "");
    buf_consume(&b, 5);
    buf_commit(&b, 0);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_check(&b, "it", NULL), 0);
    char *text = buf_steal(&b);
    assert_string_equal(text, "");
    free(text);
    buf_release(&b);
}

static void test_append(void **state)
{
    struct buf b = BUF_INIT(1 << 20);
    for (int i = 0; i < 1000; i++)
        buf_addf(&b, "%03d,", i);
    buf_addc(&b, '.');
    buf_add(&b, "a\0b", 3);
    assert_int_equal(b.len, 4004);
    assert_memory_equal(b.data, "000,001,", 8);
    assert_memory_equal(b.data + 3996, "999,.a\0b", 9); /* with the NUL behind it */
    buf_release(&b);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.max, 1 << 20);
}

static void test_maximum(void **state)
{
    struct buf b = BUF_INIT(5);
    struct error err = {0};
    buf_adds(&b, "12345"); /* exactly */
    assert_int_equal(buf_check(&b, "it", &err), 0);
    buf_addc(&b, '6');
    assert_true(b.failed);
    buf_consume(&b, 4);
    buf_addc(&b, 'x'); /* does nothing any more */
    assert_string_equal(b.data, "5");
    assert_int_equal(buf_check(&b, "the body", &err), -1);
    assert_int_equal(err.code, ERROR_PAYLOAD_TOO_LARGE);
    assert_string_equal(err.message, "the body is larger than 5 bytes");
    buf_clear(&b);
    buf_addf(&b, "%s", "abc");
    assert_false(b.failed);
    assert_string_equal(b.data, "abc");
    buf_addf(&b, "%s", "def");
    assert_true(b.failed);
    assert_string_equal(b.data, "abc");
    buf_release(&b);
}

static void test_reserve(void **state)
{
    struct buf b = BUF_INIT(100);
    char *to = buf_reserve(&b, 50);
    assert_non_null(to);
    memcpy(to, "hello", 5);
    buf_commit(&b, 5);
    assert_string_equal(b.data, "hello");
    assert_null(buf_reserve(&b, 96));
    assert_null(buf_reserve(&b, 1)); /* failed before */
    buf_clear(&b);
    assert_null(buf_reserve(&b, SIZE_MAX));
    buf_release(&b);
}

static void test_consume(void **state)
{
    struct buf b = BUF_INIT(100);
    buf_adds(&b, "hello world");
    buf_consume(&b, 6);
    assert_string_equal(b.data, "world");
    buf_consume(&b, 0);
    buf_consume(&b, 100);
    assert_string_equal(b.data, "");
    buf_adds(&b, "again");
    char *text = buf_steal(&b);
    assert_string_equal(text, "again");
    assert_int_equal(b.len, 0);
    free(text);
    buf_release(&b);
}

static void test_doubles(void **state)
{
    _cleanup_buf_ struct buf b = BUF_INIT(1000);
    static const double values[] = {0, 1, -2.5, 0.1, 1.0 / 3, 1e300, 123456789012345680.0};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        buf_clear(&b);
        buf_add_double(&b, values[i]);
        assert_true(strtod(b.data, NULL) == values[i]);
    }
    buf_clear(&b);
    buf_add_double(&b, 0.1);
    assert_string_equal(b.data, "0.1");
}

static void test_trimmed_slices(void **state)
{
    assert_true(slice_eq(slice_trim(slice_of(" \ta b\t ")), slice_of("a b")));
    assert_true(slice_eq(slice_trim(slice_of(" \t")), slice_of("")));
    assert_true(slice_eq(slice_trim(slice_of("")), slice_of("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles), cmocka_unit_test(test_trimmed_slices),
        cmocka_unit_test(test_empty),   cmocka_unit_test(test_append),
        cmocka_unit_test(test_maximum), cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_consume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
