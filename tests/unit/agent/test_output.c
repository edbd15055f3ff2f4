/* SPDX-License-Identifier: Apache-2.0 */

/* The ring: whatever is written, in whatever pieces, the newest bytes are there, exactly. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/output.h"
#include "base/cleanup.h"

static char byte_at(uint64_t offset)
{
    return (char)(offset * 7 + (offset >> 8) * 13 + (offset >> 16));
}

/* Writes bytes as a pipe would give them: at most `piece` per read. */
static void fill(struct output *output, size_t len, size_t piece)
{
    while (len > 0) {
        struct iovec iov[2];
        int pieces = output_space(output, iov);
        assert_true(pieces == 1 || pieces == 2);
        size_t n = 0, most = piece < len ? piece : len;
        for (int i = 0; i < pieces; i++)
            for (size_t k = 0; k < iov[i].iov_len && n < most; k++, n++)
                ((char *)iov[i].iov_base)[k] = byte_at(output->total + n);
        assert_true(n > 0);
        output_commit(output, n);
        len -= n;
    }
}

static void check(const struct output *output, uint64_t from, size_t max, uint64_t want_from,
                  size_t want_len)
{
    _cleanup_buf_ struct buf out = BUF_INIT(8 << 20);
    assert_int_equal(output_read(output, from, max, &out), want_from);
    assert_int_equal(out.len, want_len);
    for (size_t i = 0; i < out.len; i++)
        if (out.data[i] != byte_at(want_from + i))
            fail_msg("byte %zu is wrong", i);
}

static void test_empty(void **state)
{
    struct output output;
    output_init(&output, 100);
    assert_int_equal(output_start(&output), 0);
    check(&output, 0, 10, 0, 0);
    check(&output, 10, 10, 0, 0);
    output_trim(&output);
    output_release(&output);
}

static void test_small(void **state)
{
    struct output output;
    output_init(&output, 1 << 20);
    fill(&output, 10, 3);
    assert_true(output.cap <= 4096); /* a line costs a line */
    check(&output, 0, 100, 0, 10);
    check(&output, 4, 3, 4, 3);
    check(&output, 10, 3, 10, 0);
    check(&output, 1000, 3, 10, 0);
    output_trim(&output);
    assert_int_equal(output.cap, 10);
    check(&output, 0, 100, 0, 10);
    output_release(&output);
}

static void test_rows(void **state)
{
    static const struct {
        size_t max, len, piece;
    } rows[] = {
        {1, 1, 1},
        {1, 5000, 7},
        {10, 100000, 4096},
        {4096, 4096, 4096},
        {4096, 4097, 1},
        {5000, 5000, 999},
        {5000, 123456, 999},
        {65536, 1 << 20, 65536},
        {100000, 99999, 3},
        {1 << 20, 10 << 20, 65536},
        {1 << 20, (10 << 20) + 1, 4095},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct output output;
        output_init(&output, rows[i].max);
        fill(&output, rows[i].len, rows[i].piece);
        size_t kept = rows[i].len < rows[i].max ? rows[i].len : rows[i].max;
        uint64_t start = rows[i].len - kept;
        assert_int_equal(output.total, rows[i].len);
        assert_int_equal(output_start(&output), start);
        check(&output, 0, SIZE_MAX, start, kept);
        check(&output, start + kept / 2, kept, start + kept / 2, kept - kept / 2);
        check(&output, start + kept / 3, 1, start + kept / 3, 1);
        output_trim(&output);
        assert_int_equal(output.cap, kept);
        check(&output, 0, SIZE_MAX, start, kept);
        output_release(&output);
    }
}

/* What could not be kept makes a hole; what was before it is gone, offsets stay right. */
static void test_skip(void **state)
{
    struct output output;
    output_init(&output, 1000);
    fill(&output, 100, 100);
    output_skip(&output, 50);
    assert_int_equal(output_start(&output), 150);
    fill(&output, 20, 20);
    check(&output, 0, 100, 150, 20);
    output_release(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_skip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
