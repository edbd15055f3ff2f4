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

/* The time that the marks give for a byte. */
static uint64_t time_of(const struct output *output, uint64_t offset)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    output_times(output, offset, offset + 1, &out);
    assert_int_equal(out.len, sizeof(struct output_mark)); /* exactly the one that counts */
    struct output_mark mark;
    memcpy(&mark, out.data, sizeof(mark));
    assert_true(mark.offset <= offset);
    return mark.time_ms;
}

static void test_times(void **state)
{
    struct output output;
    output_init(&output, 1000);
    output_stamp(&output, 5000);
    output_add(&output, "abc", 3);
    assert_int_equal(output.mark_cap, 0); /* a process that prints a line has no table */
    output_stamp(&output, 5005);          /* the same moment */
    output_add(&output, "def", 3);
    assert_int_equal(output.mark_cap, 0);
    output_stamp(&output, 6000);
    output_add(&output, "ghi", 3);
    output_stamp(&output, 7000);
    output_stamp(&output, 8000); /* nothing came at 7000 */
    output_add(&output, "jkl", 3);
    output_stamp(&output, 3000); /* the clock was set back */
    output_add(&output, "mno", 3);
    static const uint64_t times[] = {5000, 5000, 5000, 5000, 5000, 5000, 6000, 6000,
                                     6000, 8000, 8000, 8000, 3000, 3000, 3000};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        assert_int_equal(time_of(&output, i), times[i]);
    _cleanup_buf_ struct buf out = BUF_INIT(1000);
    output_times(&output, 4, 10, &out);
    assert_int_equal(out.len, 3 * sizeof(struct output_mark));
    output_release(&output);
}

/* However long it goes on, the table stays small, and what it says of what is kept is about right.
 */
static void test_times_are_bounded(void **state)
{
    struct output output;
    output_init(&output, 10000);
    for (uint64_t i = 0; i < 100000; i++) {
        output_stamp(&output, i * 100);
        output_add(&output, "x", 1);
        assert_true(output.mark_count <= 256);
    }
    for (uint64_t i = output_start(&output); i < output.total; i += 10) {
        assert_true(time_of(&output, i) <= i * 100);
        uint64_t age = (output.total - i) * 100;
        assert_true(time_of(&output, i) + 200 + age / 10 >= i * 100);
    }
    output_trim(&output);
    assert_int_equal(time_of(&output, output.total - 1), (output.total - 1) * 100);
    output_release(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty), cmocka_unit_test(test_small),
        cmocka_unit_test(test_times), cmocka_unit_test(test_times_are_bounded),
        cmocka_unit_test(test_rows),  cmocka_unit_test(test_skip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
