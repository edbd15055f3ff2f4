/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static const struct plan good = {
    .id = "abc123",
    .hostname = "my-box",
    .image = "host",
    .memory_bytes = 256 << 20,
    .cpu_millis = 500,
    .pids_max = 100,
    .disk_bytes = 64 << 20,
    .shm_bytes = 16 << 20,
    .scratch_bytes = 4 << 20,
};

static void a_good_plan_passes(void **state)
{
    struct error err;
    struct plan plan = good;
    assert_int_equal(plan_check(&plan, &err), 0);
    plan.flags = PLAN_NO_NEW_PRIVS | PLAN_READ_ONLY_ROOT;
    assert_int_equal(plan_check(&plan, &err), 0);
    plan.flags |= PLAN_NO_SUBPROCESS | PLAN_NO_CAPABILITIES | PLAN_STRICT_CALLS;
    assert_int_equal(plan_check(&plan, &err), 0);
}

static void flags_that_need_something_have_it(void **state)
{
    static const struct {
        uint64_t flags, scratch_bytes;
    } bad[] = {
        {PLAN_NO_SUBPROCESS, 4 << 20}, /* without no_new_privs no filter can be loaded */
        {PLAN_READ_ONLY_ROOT, 0},      /* which would be no limit */
        {PLAN_READ_ONLY_ROOT, 4096},
        {PLAN_READ_ONLY_ROOT, UINT64_C(257) << 20}, /* more than there is memory */
        {PLAN_READ_ONLY_ROOT, UINT64_MAX},
        {1 << 5, 4 << 20},
        {UINT64_C(1) << 63, 4 << 20},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct plan plan = good;
        struct error err;
        plan.flags = bad[i].flags;
        plan.scratch_bytes = bad[i].scratch_bytes;
        assert_int_equal(plan_check(&plan, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
}

static void ids_are_safe_as_names(void **state)
{
    static const char *const bad[] = {"",
                                      ".",
                                      "..",
                                      "a/b",
                                      "../x",
                                      "A",
                                      "a b",
                                      "a.b",
                                      "a-b",
                                      "a_b",
                                      "a\n",
                                      "é",
                                      "abcdefghijklmnopqrstuvwxyz0123456"};
    assert_true(plan_id_valid("a"));
    assert_true(plan_id_valid("abcdefghijklmnopqrstuvwxyz012345"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct plan plan = good;
        struct error err;
        plan.id = bad[i];
        assert_int_equal(plan_check(&plan, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_NAME);
    }
}

static void hostnames_are_labels(void **state)
{
    static const char *const bad[] = {
        "",     "-a",  "a-",
        "a.b",  "A",   "a b",
        "a\nb", "a/b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct plan plan = good;
        struct error err;
        plan.hostname = bad[i];
        assert_int_equal(plan_check(&plan, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_NAME);
    }
}

static void numbers_have_bounds(void **state)
{
    static const struct {
        size_t offset;
        uint64_t bad[2];
    } rows[] = {
        {offsetof(struct plan, memory_bytes), {0, UINT64_MAX}},
        {offsetof(struct plan, cpu_millis), {0, UINT64_MAX}},
        {offsetof(struct plan, pids_max), {0, UINT64_MAX}},
        {offsetof(struct plan, disk_bytes), {0, UINT64_MAX}},
        {offsetof(struct plan, shm_bytes), {0, UINT64_MAX}},
        {offsetof(struct plan, flags), {4, UINT64_MAX}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int j = 0; j < 2; j++) {
            struct plan plan = good;
            struct error err;
            memcpy((char *)&plan + rows[i].offset, &rows[i].bad[j], sizeof(uint64_t));
            assert_int_equal(plan_check(&plan, &err), -1);
            assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_plan_passes),
        cmocka_unit_test(flags_that_need_something_have_it),
        cmocka_unit_test(ids_are_safe_as_names),
        cmocka_unit_test(hostnames_are_labels),
        cmocka_unit_test(numbers_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
