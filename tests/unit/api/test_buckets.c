/* SPDX-License-Identifier: Apache-2.0 */

#include "helpers.h"

#include "api/buckets.h"

#define MS INT64_C(1000000)

static struct bucket_name name_of(unsigned number)
{
    struct bucket_name name = {.what = 1};
    memcpy(name.owner, &number, sizeof(number));
    return name;
}

static void test_burst_and_refill(void **state)
{
    struct buckets b = {0};
    const struct bucket_rate rate = {.per_second = 10, .burst = 5};
    const struct bucket_name one = name_of(1), two = name_of(2);
    int64_t now = 1000 * MS;
    for (unsigned left = 5; left > 0; left--) {
        struct bucket_state s = buckets_take(&b, &one, &rate, now);
        assert_true(s.allowed);
        assert_int_equal(s.remaining, left - 1);
    }
    struct bucket_state s = buckets_take(&b, &one, &rate, now);
    assert_false(s.allowed);
    assert_int_equal(s.wait_ns, 100 * MS);
    assert_int_equal(s.full_ns, 500 * MS);
    /* Going on costs nothing more. */
    for (int i = 0; i < 1000; i++)
        assert_false(buckets_take(&b, &one, &rate, now + 99 * MS).allowed);
    assert_true(buckets_take(&b, &one, &rate, now + 100 * MS).allowed);
    assert_false(buckets_take(&b, &one, &rate, now + 100 * MS).allowed);
    assert_int_equal(buckets_look(&b, &one, &rate, now + 3000 * MS).remaining, 5);
    /* Nobody else's. */
    assert_int_equal(buckets_take(&b, &two, &rate, now).remaining, 4);
    assert_int_equal(buckets_look(&b, &(struct bucket_name){.what = 9}, &rate, now).remaining, 5);
    buckets_release(&b);
}

static void test_rate_over_time(void **state)
{
    struct buckets b = {0};
    const struct bucket_rate rate = {.per_second = 1000, .burst = 100};
    const struct bucket_name one = name_of(1);
    unsigned allowed = 0;
    for (int64_t now = 0; now < 10000 * MS; now += MS / 10)
        allowed += buckets_take(&b, &one, &rate, now).allowed;
    assert_in_range(allowed, 10000, 10100);
    buckets_release(&b);
}

/* However many come, the table does not grow; who comes often stays in it. */
static void test_bounded(void **state)
{
    struct buckets b = {.max = 100};
    const struct bucket_rate rate = {.per_second = 1, .burst = 2};
    const struct bucket_name loyal = name_of(0);
    assert_true(buckets_take(&b, &loyal, &rate, 0).allowed);
    assert_true(buckets_take(&b, &loyal, &rate, 0).allowed);
    for (unsigned i = 1; i < 100000; i++) {
        const struct bucket_name other = name_of(i);
        assert_true(buckets_take(&b, &other, &rate, 0).allowed);
        if (i % 50 == 0)
            assert_false(buckets_take(&b, &loyal, &rate, 0).allowed);
    }
    assert_int_equal(HASH_CNT(hh, b.items), 100);
    assert_int_equal(b.evicted, 99999 - 99);
    buckets_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_burst_and_refill),
        cmocka_unit_test(test_rate_over_time),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
