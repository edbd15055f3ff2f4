/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void cpu_quota(void **state)
{
    static const struct {
        uint64_t millis, quota;
        const char *max;
    } rows[] = {
        {1, 1000, "1000 1000000"}, /* the kernel's smallest quota, and its longest period */
        {10, 1000, "1000 100000"},    {100, 1000, "1000 10000"},       {500, 5000, "5000 10000"},
        {1000, 10000, "10000 10000"}, {64000, 640000, "640000 10000"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[48];
        assert_true(cgroup_cpu_quota(rows[i].millis).quota_us == rows[i].quota);
        cgroup_format_cpu_max(rows[i].millis, text, sizeof(text));
        assert_string_equal(text, rows[i].max);
    }
}

static void flat_values(void **state)
{
    static const char v1[] = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
    static const char v2[] = "low 0\nhigh 0\nmax 12\noom 1\noom_kill 4\noom_group_kill 9\n";
    assert_int_equal(cgroup_flat_value(v1, "oom_kill"), 3);
    assert_int_equal(cgroup_flat_value(v2, "oom_kill"), 4);
    assert_int_equal(cgroup_flat_value(v2, "max"), 12);
    assert_int_equal(cgroup_flat_value(v2, "absent"), 0);
    assert_int_equal(cgroup_flat_value("", "oom_kill"), 0);
    assert_int_equal(cgroup_flat_value("populated 1\nfrozen 0\n", "populated"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_quota),
        cmocka_unit_test(flat_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
