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

static const struct machine machine = {.total = {[RESOURCE_CPU] = 8000,
                                                 [RESOURCE_MEMORY] = UINT64_C(16) << 30,
                                                 [RESOURCE_DISK] = UINT64_C(100) << 30,
                                                 [RESOURCE_PIDS] = 32768,
                                                 [RESOURCE_NETWORK_IN] = 1000000,
                                                 [RESOURCE_MEMORY_BANDWIDTH] = 20000000000}};

static void test_defaults(void **state)
{
    struct sandbox_resources resources = {.memory = "64Mi"};
    struct spec_limits limits;
    struct error err;
    struct arena *arena = arena_new();
    spec_defaults(&machine, &resources, arena);
    assert_string_equal(resources.cpu, "1000m");
    assert_string_equal(resources.memory, "64Mi");
    assert_int_equal(spec_limits(&machine, &resources, &limits, &err), 0);
    assert_int_equal(limits.cpu_millis, 1000);
    assert_int_equal(limits.memory_bytes, 64 << 20);
    assert_int_equal(limits.disk_bytes, UINT64_C(10) << 30);

    /* A machine that has less than the usual gives all of it. */
    struct machine small = machine;
    small.total[RESOURCE_DISK] = UINT64_C(3) << 30;
    struct sandbox_resources rest = {{{NULL}}};
    spec_defaults(&small, &rest, arena);
    assert_string_equal(rest.disk, "3072Mi");
    assert_string_equal(rest.memory, "1Gi");
    arena_free(arena);
}

static void test_bounds(void **state)
{
    static const struct {
        struct sandbox_resources resources;
        const char *field; /* that the error has to name */
    } rows[] = {
        {{.cpu = "9m", .memory = "1Gi", .disk = "1Gi"}, "spec.resources.cpu"},
        {{.cpu = "0", .memory = "1Gi", .disk = "1Gi"}, "spec.resources.cpu"},
        {{.cpu = "1025", .memory = "1Gi", .disk = "1Gi"}, "spec.resources.cpu"},
        {{.cpu = "lots", .memory = "1Gi", .disk = "1Gi"}, "spec.resources.cpu"},
        {{.cpu = "1", .memory = "15Mi", .disk = "1Gi"}, "spec.resources.memory"},
        {{.cpu = "1", .memory = "-1Gi", .disk = "1Gi"}, "spec.resources.memory"},
        {{.cpu = "1", .memory = "17Ti", .disk = "1Gi"}, "spec.resources.memory"},
        {{.cpu = "1", .memory = "1Gi", .disk = "1"}, "spec.resources.disk"},
        {{.cpu = "1", .memory = "1Gi", .disk = ""}, "spec.resources.disk"},
        {{.cpu = "0%"}, "spec.resources.cpu"},
        {{.cpu = "101%"}, "spec.resources.cpu"},
        {{.memory = "%"}, "spec.resources.memory"},
        {{.memory = "1e1%"}, "spec.resources.memory"},
        {{.memory = "-5%"}, "spec.resources.memory"},
        {{.disk = "5Gi%"}, "spec.resources.disk"},
        {{.pids = "15"}, "spec.resources.pids"},
        {{.pids = "many"}, "spec.resources.pids"},
        {{.pids = "5M"}, "spec.resources.pids"},
        {{.disk_read = "1"}, "spec.resources.diskRead"},
        {{.disk_write = "2Ti"}, "spec.resources.diskWrite"},
        {{.disk_read_ops = "9"}, "spec.resources.diskReadOps"},
        {{.disk_write_ops = "1G"}, "spec.resources.diskWriteOps"},
        {{.network_in = "0"}, "spec.resources.networkIn"},
        {{.network_out = "fast"}, "spec.resources.networkOut"},
        {{.memory_bandwidth = "1k"}, "spec.resources.memoryBandwidth"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct spec_limits limits;
        struct error err;
        assert_int_equal(spec_limits(&machine, &rows[i].resources, &limits, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_QUANTITY);
        assert_non_null(strstr(err.message, rows[i].field));
    }
}

static void test_shares(void **state)
{
    const struct sandbox_resources resources = {.cpu = "12.5%",
                                                .memory = "25%",
                                                .disk = "100%",
                                                .pids = "1%",
                                                .network_in = "50%",
                                                .memory_bandwidth = "10%"};
    struct spec_limits limits;
    struct error err;
    assert_int_equal(spec_limits(&machine, &resources, &limits, &err), 0);
    assert_int_equal(limits.cpu_millis, 1000);
    assert_int_equal(limits.memory_bytes, UINT64_C(4) << 30);
    assert_int_equal(limits.disk_bytes, UINT64_C(100) << 30);
    assert_int_equal(limits.pids, 327);
    assert_int_equal(limits.network_in, 500000);
    assert_int_equal(limits.memory_bandwidth, 2000000000);
    assert_int_equal(limits.disk_read, 0); /* not given: no limit */
}

/* A limit that was worked out is written down as text, and is the same when it is read. */
static void test_text(void **state)
{
    static const uint64_t values[] = {10, 1500, 16 << 20, (16 << 20) + 1, UINT64_C(3) << 40};
    struct arena *arena = arena_new();
    for (int r = 0; r < RESOURCE_COUNT; r++)
        for (size_t i = 0; i < ARRAY_LEN(values); i++) {
            uint64_t back;
            const char *text = spec_text((enum resource)r, values[i], arena);
            assert_int_equal(spec_quantity((enum resource)r, text, &back, NULL), 0);
            assert_int_equal(back, values[i]);
        }
    arena_free(arena);
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
        .cpu_millis = 500, .memory_bytes = 32 << 20, .disk_bytes = 1 << 30, .pids = 100};
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
        cmocka_unit_test(test_plan),     cmocka_unit_test(test_shares),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
