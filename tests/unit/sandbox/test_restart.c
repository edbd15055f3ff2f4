/* SPDX-License-Identifier: Apache-2.0 */

/* The names of restart policies, and how long to wait before a restart. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "sandbox/restart.h"

static void test_names(void **state)
{
    enum restart_policy policy;
    struct error err;
    for (int i = RESTART_ON_USE; i <= RESTART_NO; i++) {
        policy = RESTART_ALWAYS;
        assert_int_equal(
            restart_policy_parse(restart_policy_text((enum restart_policy)i), &policy, &err), 0);
        assert_int_equal(policy, i);
    }
    assert_int_equal(restart_policy_parse(NULL, &policy, &err), 0);
    assert_int_equal(policy, RESTART_ON_USE);
    static const char *const wrong[] = {"", "never", "ALWAYS", "on use", "on-boot "};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(restart_policy_parse(wrong[i], &policy, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "on-use, on-boot, always, no"));
    }
}

static void test_delays(void **state)
{
    static const struct {
        unsigned failures;
        int64_t delay_ms;
    } rows[] = {{0, 500},   {1, 500},   {2, 1000},    {3, 2000},          {7, 32000},
                {8, 60000}, {9, 60000}, {100, 60000}, {UINT32_MAX, 60000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(restart_delay_ms(rows[i].failures), rows[i].delay_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_delays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
