/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/net_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 100, MINUTE = BUDGET_SLOT_MS };

static unsigned take_all(struct net_budget *budget, uint64_t now_ms, uint32_t seconds)
{
    unsigned count = 0;
    while (budget_take(budget, now_ms, seconds, MOST))
        count++;
    return count;
}

static void what_has_run_out_can_be_taken_again(void **state)
{
    struct net_budget budget = {0};
    uint64_t now = UINT64_C(1234567) * MINUTE + 59999;
    assert_int_equal(take_all(&budget, now, 10), MOST);
    assert_int_equal(take_all(&budget, now + 9000, 10), 0);
    /* In the minute after the one in which they end. */
    assert_int_equal(take_all(&budget, now + 1 + MINUTE, 10), MOST);
}

static void each_ends_in_its_own_minute(void **state)
{
    struct net_budget budget = {0};
    for (unsigned i = 0; i < MOST; i++)
        assert_true(budget_take(&budget, 0, i < 30 ? 60 : NET_ADMIT_TTL_MAX_S, MOST));
    assert_false(budget_take(&budget, 0, 1, MOST));
    assert_int_equal(take_all(&budget, 2 * MINUTE, 7200 / 4), 30);
    assert_int_equal(take_all(&budget, 60 * MINUTE, 60), 30);
    assert_int_equal(take_all(&budget, 61 * MINUTE, 60), 70);
}

static void the_longest_ones_for_days(void **state)
{
    struct net_budget budget = {0};
    unsigned total = 0;
    for (uint64_t now = 7; now < UINT64_C(3) * 24 * 60 * MINUTE; now += 41 * 1000)
        total += take_all(&budget, now, NET_ADMIT_TTL_MAX_S);
    /* As many per hour and a minute as there may be at once. */
    assert_in_range(total, 70 * MOST, 73 * MOST);
}

static void after_a_long_time_and_with_a_clock_that_stands(void **state)
{
    struct net_budget budget = {0};
    assert_int_equal(take_all(&budget, 5 * MINUTE, 3600), MOST);
    assert_int_equal(take_all(&budget, UINT64_MAX / 2, 3600), MOST);
    assert_int_equal(take_all(&budget, UINT64_MAX / 2 - 10 * MINUTE, 3600), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_run_out_can_be_taken_again),
        cmocka_unit_test(each_ends_in_its_own_minute),
        cmocka_unit_test(the_longest_ones_for_days),
        cmocka_unit_test(after_a_long_time_and_with_a_clock_that_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
