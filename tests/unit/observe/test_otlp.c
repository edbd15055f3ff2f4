/* SPDX-License-Identifier: Apache-2.0 */

/* The bytes themselves; whether they mean what they should is for a decoder to say, in
 * tests/clients/test_otlp.py. */

#include "observe/otlp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "observe/protobuf.h"

static void primitives(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(256);
    pb_uint(&out, 1, 300);
    pb_fixed64(&out, 2, 1);
    pb_text(&out, 3, "hi");
    pb_text(&out, 4, "");
    size_t mark = pb_begin(&out, 5);
    pb_uint(&out, 1, 1);
    pb_end(&out, mark);
    static const unsigned char expected[] = {0x08, 0xac, 0x02,                      /* 1: 300 */
                                             0x11, 1,    0,    0,    0, 0, 0, 0, 0, /* 2: 1 */
                                             0x1a, 2,    'h',  'i',                 /* 3: hi */
                                             0x2a, 0x82, 0x80, 0x80, 0,             /* 5: 2 bytes */
                                             0x08, 1};
    assert_int_equal(out.len, sizeof(expected));
    assert_memory_equal(out.data, expected, sizeof(expected));
}

static void full_buffers(void **state)
{
    for (size_t max = 0; max < 64; max++) {
        _cleanup_buf_ struct buf out = BUF_INIT(max);
        otlp_attribute(&out, 1, "name", "value", 0);
        assert_true(out.len <= max);
        assert_true(out.failed || out.len > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(primitives),
                                       cmocka_unit_test(full_buffers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
