/* SPDX-License-Identifier: Apache-2.0 */

/* Bounds and defaults of what a sandbox can be asked to be. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/spec.h"

static void test_defaults(void **state)
{
    struct sandbox_resources resources = {.memory = "64Mi"};
    struct spec_limits limits;
    struct error err;
    spec_defaults(&resources);
    assert_string_equal(resources.cpu, "1000m");
    assert_string_equal(resources.memory, "64Mi");
    assert_int_equal(spec_limits(&resources, &limits, &err), 0);
    assert_int_equal(limits.cpu_millis, 1000);
    assert_int_equal(limits.memory_bytes, 64 << 20);
    assert_int_equal(limits.disk_bytes, UINT64_C(10) << 30);
}

static void test_bounds(void **state)
{
    static const struct {
        struct sandbox_resources resources;
        const char *field; /* that the error has to name */
    } rows[] = {
        {{"9m", "1Gi", "1Gi"}, "spec.resources.cpu"},
        {{"0", "1Gi", "1Gi"}, "spec.resources.cpu"},
        {{"1025", "1Gi", "1Gi"}, "spec.resources.cpu"},
        {{"lots", "1Gi", "1Gi"}, "spec.resources.cpu"},
        {{"1", "15Mi", "1Gi"}, "spec.resources.memory"},
        {{"1", "-1Gi", "1Gi"}, "spec.resources.memory"},
        {{"1", "17Ti", "1Gi"}, "spec.resources.memory"},
        {{"1", "1Gi", "1"}, "spec.resources.disk"},
        {{"1", "1Gi", ""}, "spec.resources.disk"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct spec_limits limits;
        struct error err;
        assert_int_equal(spec_limits(&rows[i].resources, &limits, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_QUANTITY);
        assert_non_null(strstr(err.message, rows[i].field));
    }
}

static void test_env(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        int rc;
    } rows[] = {
        {"", 0, 0},      {"A=1", 4, 0},    {"A=1\0_B2=x=y", 12, 0},
        {"A=", 3, 0},    {"A", 2, -1},     {"=x", 3, -1},
        {"1A=x", 5, -1}, {"A B=x", 6, -1}, {"A=1\0B-C=2", 10, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err;
        assert_int_equal(spec_check_env((struct slice){rows[i].text, rows[i].len}, &err),
                         rows[i].rc);
        if (rows[i].rc < 0)
            assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
}

static void test_env_limits(void **state)
{
    struct error err;
    struct buf env = BUF_INIT(1 << 20);
    for (int i = 0; i <= ENV_VARS_MAX; i++) {
        buf_addf(&env, "A%d=1", i);
        buf_addc(&env, '\0');
    }
    assert_int_equal(spec_check_env((struct slice){env.data, env.len}, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    buf_release(&env);
}

static void test_plan(void **state)
{
    struct spec_limits limits = {
        .cpu_millis = 500, .memory_bytes = 32 << 20, .disk_bytes = 1 << 30};
    struct plan plan;
    spec_plan("abc", "box", "host", &limits, &plan);
    assert_string_equal(plan.hostname, "box");
    assert_int_equal(plan.shm_bytes, 16 << 20); /* half the memory, so that it cannot fill it */
    assert_true(plan.pids_max > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_env),      cmocka_unit_test(test_env_limits),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
