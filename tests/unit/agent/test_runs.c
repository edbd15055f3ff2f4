/* SPDX-License-Identifier: Apache-2.0 */

/* The order of two streams, against a plain list of who wrote which byte. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "agent/runs.h"

enum { BYTES = 100 * 1000 };

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245 + 12345;
    return *seed >> 16;
}

/* Everything from an offset on is what was written there, in whatever steps it is read. */
static void check_from(const struct runs *runs, const unsigned char *model,
                       const uint64_t totals[2], uint64_t offset, unsigned *seed)
{
    struct run_cursor at;
    uint64_t total = totals[0] + totals[1], streams[2] = {0, 0};
    runs_seek(runs, totals, offset, &at);
    assert_int_equal(at.offset, offset < runs->start ? runs->start
                                : offset > total     ? total
                                                     : offset);
    for (uint64_t i = 0; i < at.offset; i++)
        streams[model[i]]++;
    size_t len;
    unsigned stream;
    while ((len = runs_next(runs, &at, &stream)) > 0) {
        assert_int_equal(at.stream[0], streams[0]);
        assert_int_equal(at.stream[1], streams[1]);
        size_t take = 1 + next_random(seed) % len;
        for (size_t i = 0; i < take; i++)
            assert_int_equal(model[at.offset + i], stream);
        streams[stream] += take;
        runs_pass(runs, &at, take);
    }
    assert_int_equal(at.offset, total);
}

static void fill(unsigned longest, unsigned seed)
{
    struct runs runs = {0};
    unsigned char *model = malloc(BYTES);
    uint64_t totals[2] = {0, 0};
    assert_non_null(model);
    for (size_t done = 0; done < BYTES;) {
        unsigned stream = next_random(&seed) % 2;
        size_t len = 1 + next_random(&seed) % longest;
        len = len < BYTES - done ? len : BYTES - done;
        runs_add(&runs, stream, len);
        for (size_t i = 0; i < len; i++)
            model[done + i] = (unsigned char)stream;
        done += len;
        totals[stream] += len;
    }
    for (int i = 0; i < 50; i++)
        check_from(&runs, model, totals, next_random(&seed) * 31 % (BYTES + 100), &seed);
    check_from(&runs, model, totals, 0, &seed);
    check_from(&runs, model, totals, BYTES, &seed);
    assert_true(runs_bytes(&runs) <= 64 * 1024);
    runs_release(&runs);
    free(model);
}

static void test_long_runs(void **state)
{
    fill(20000, 1);
}

static void test_short_runs(void **state)
{
    fill(3, 2); /* more than are remembered: the oldest are not */
}

static void test_one_stream_is_one_run(void **state)
{
    struct runs runs = {0};
    for (int i = 0; i < 1000; i++)
        runs_add(&runs, 1, 1000);
    assert_int_equal(runs.count, 1);
    assert_int_equal(runs_bytes(&runs), 0);
    runs_add(&runs, 1, 0);
    assert_int_equal(runs.count, 1);
    /* Past what one run can say, another one begins. */
    runs_add(&runs, 1, INT32_MAX);
    assert_int_equal(runs.count, 2);
    runs_release(&runs);
}

static void test_empty(void **state)
{
    struct runs runs = {0};
    struct run_cursor at;
    unsigned stream;
    runs_seek(&runs, (uint64_t[2]){0, 0}, 7, &at);
    assert_int_equal(at.offset, 0);
    assert_int_equal(runs_next(&runs, &at, &stream), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_short_runs),
        cmocka_unit_test(test_one_stream_is_one_run),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
