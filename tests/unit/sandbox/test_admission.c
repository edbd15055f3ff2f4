/* SPDX-License-Identifier: Apache-2.0 */

/* Promises add up, are given back, and are refused with figures. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "sandbox/admission.h"

#define GIB (UINT64_C(1) << 30)

static const struct spec_limits one = {
    .cpu_millis = 1000, .memory_bytes = GIB, .disk_bytes = 10 * GIB, .pids = 1024};

/* Two cores, 4 GiB, 40 GiB; promises are kept. */
static struct admission small_machine(void)
{
    struct admission a;
    admission_init(&a, AT_FDCWD);
    assert_int_equal(admission_set_overcommit(&a, "1,pids=10", NULL), 0);
    assert_int_equal(machine_configure(&a.machine, "cpu=2,memory=4Gi,disk=40Gi,pids=32k", NULL), 0);
    return a;
}

static void test_fills_up(void **state)
{
    struct admission a = small_machine();
    struct promise first = {0}, second = {0}, third = {0};
    struct error err;
    assert_int_equal(admission_reserve(&a, &first, PROMISE_ALL, &one, &err), 0);
    assert_int_equal(admission_reserve(&a, &second, PROMISE_ALL, &one, &err), 0);
    assert_int_equal(admission_free(&a, RESOURCE_CPU), 0);
    assert_int_equal(admission_free(&a, RESOURCE_MEMORY), 2 * GIB);

    assert_int_equal(admission_reserve(&a, &third, PROMISE_ALL, &one, &err), -1);
    assert_int_equal(err.code, ERROR_INSUFFICIENT_RESOURCES);
    assert_non_null(strstr(err.message, "cpu: 1 cores asked for, 0 cores free"));
    assert_non_null(strstr(err.message, "the machine has 2 cores"));
    assert_non_null(strstr(err.message, "2 cores promised"));
    assert_int_equal(third.kind, PROMISE_NONE);
    assert_int_equal(a.promised[RESOURCE_MEMORY], 2 * GIB); /* nothing of it was kept */

    /* Its disk alone still fits. */
    assert_int_equal(admission_reserve(&a, &third, PROMISE_DISK, &one, &err), 0);
    assert_int_equal(a.promised[RESOURCE_DISK], 30 * GIB);
    admission_release(&a, &first);
    assert_int_equal(admission_reserve(&a, &third, PROMISE_ALL, &one, &err), 0);
    admission_release(&a, &second);
    admission_release(&a, &third);
    admission_release(&a, &third); /* twice is once */
    for (int i = 0; i < RESOURCE_COUNT; i++)
        assert_int_equal(a.promised[i], 0);
}

static void test_stopped_keeps_disk(void **state)
{
    struct admission a = small_machine();
    struct promise promise = {0};
    assert_int_equal(admission_reserve(&a, &promise, PROMISE_ALL, &one, NULL), 0);
    admission_shrink(&a, &promise);
    admission_shrink(&a, &promise);
    assert_int_equal(a.promised[RESOURCE_CPU], 0);
    assert_int_equal(a.promised[RESOURCE_MEMORY], 0);
    assert_int_equal(a.promised[RESOURCE_PIDS], 0);
    assert_int_equal(a.promised[RESOURCE_DISK], 10 * GIB);
    admission_release(&a, &promise);
    assert_int_equal(a.promised[RESOURCE_DISK], 0);
    admission_shrink(&a, &promise); /* has no way back to a disk */
    assert_int_equal(a.promised[RESOURCE_DISK], 0);
}

/* A resize asks for the difference only, and one that lowers is always let in. */
static void test_change(void **state)
{
    struct admission a = small_machine();
    struct promise promise = {0};
    struct error err;
    struct spec_limits more = one, less = one;
    more.cpu_millis = 2000;
    more.memory_bytes = 4 * GIB;
    less.memory_bytes = GIB / 2;
    assert_int_equal(admission_reserve(&a, &promise, PROMISE_ALL, &one, &err), 0);
    assert_int_equal(admission_reserve(&a, &promise, PROMISE_ALL, &more, &err), 0);
    assert_int_equal(admission_free(&a, RESOURCE_MEMORY), 0);

    a.machine.total[RESOURCE_MEMORY] = GIB; /* more is promised than there is, after a restart */
    assert_int_equal(admission_free(&a, RESOURCE_MEMORY), 0);
    assert_int_equal(admission_reserve(&a, &promise, PROMISE_ALL, &less, &err), 0);
    assert_int_equal(a.promised[RESOURCE_MEMORY], GIB / 2);

    more.memory_bytes = 3 * GIB;
    assert_int_equal(admission_reserve(&a, &promise, PROMISE_ALL, &more, &err), -1);
    assert_non_null(strstr(err.message, "memory: 2.5 GiB asked for, 512 MiB free"));
    assert_int_equal(promise.limits.memory_bytes, GIB / 2);
    admission_count(&a, &promise, PROMISE_ALL, &more);
    assert_int_equal(a.promised[RESOURCE_MEMORY], 3 * GIB);
}

/* A small laptop holds dozens of ordinary sandboxes without any option, and not hundreds; what is
 * stopped leaves room for some more. */
static void test_defaults(void **state)
{
    struct admission a;
    struct error err;
    struct promise promises[100] = {0};
    size_t count = 0;
    admission_init(&a, AT_FDCWD);
    assert_int_equal(machine_configure(&a.machine, "cpu=2,memory=7700Mi,disk=20G,pids=32768", &err),
                     0);
    while (count < ARRAY_LEN(promises) &&
           admission_reserve(&a, &promises[count], PROMISE_ALL, &one, &err) == 0)
        count++;
    assert_in_range(count, 24, 40);
    assert_int_equal(err.code, ERROR_INSUFFICIENT_RESOURCES);
    assert_non_null(strstr(err.message, "memory: 1 GiB asked for"));
    assert_null(strstr(err.message, "cpu: "));
    admission_shrink(&a, &promises[0]);
    assert_int_equal(admission_reserve(&a, &promises[count], PROMISE_ALL, &one, &err), 0);
}

static void test_factors(void **state)
{
    static const char *const wrong[] = {"0",      "-1",         "x",       "cpu=",     "cpu=0",
                                        "cpu=1k", "cores=2",    "cpu=1,x", "1000001",  "cpu",
                                        "1e3",    "memory=1Gi", "=1",      "cpu=0.001"};
    struct admission a;
    struct error err;
    admission_init(&a, AT_FDCWD);
    assert_int_equal(admission_set_overcommit(&a, "1.5,cpu=4,diskRead=2", &err), 0);
    assert_int_equal(a.overcommit[RESOURCE_CPU], 400);
    assert_int_equal(a.overcommit[RESOURCE_MEMORY], 150);
    assert_int_equal(a.overcommit[RESOURCE_DISK_READ], 200);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(admission_set_overcommit(&a, wrong[i], &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
    assert_int_equal(a.overcommit[RESOURCE_CPU], 400);
    a.machine.total[RESOURCE_DISK] = UINT64_MAX; /* does not overflow */
    assert_true(admission_capacity(&a, RESOURCE_DISK) > 0);
}

static void test_machine(void **state)
{
    struct machine machine;
    struct error err;
    machine_detect(&machine, AT_FDCWD);
    assert_true(machine.total[RESOURCE_CPU] >= 1000);
    assert_true(machine.total[RESOURCE_MEMORY] > 0);
    assert_true(machine.total[RESOURCE_PIDS] > 0);
    assert_int_equal(machine.source[RESOURCE_NETWORK_IN], CAPACITY_ASSUMED);
    machine_set_disk(&machine, 5 * GIB);
    assert_int_equal(machine.total[RESOURCE_DISK], 5 * GIB);
    assert_int_equal(machine_configure(&machine, "networkIn=1M,disk=1Gi", &err), 0);
    assert_int_equal(machine.total[RESOURCE_NETWORK_IN], 1000000);
    assert_int_equal(machine.source[RESOURCE_NETWORK_IN], CAPACITY_CONFIGURED);
    machine_set_disk(&machine, 5 * GIB);
    assert_int_equal(machine.total[RESOURCE_DISK], GIB); /* the operator knows better */
    assert_int_equal(machine_configure(&machine, "networkIn=2M,what=1", &err), -1);
    assert_int_equal(machine_configure(&machine, "networkIn=50%", &err), -1);
    assert_int_equal(machine.total[RESOURCE_NETWORK_IN], 1000000);
}

static void test_pack(void **state)
{
    struct arena *arena = arena_new();
    const struct sandbox_resources given = {
        .cpu = "1", .memory = "1Gi", .disk = "1Gi", .pids = "100", .memory_bandwidth = "10%"};
    struct sandbox_resources back = {0}, over = {.pids = "7"};
    struct slice list = resources_pack(&given, arena);
    resources_unpack(list, &back);
    assert_null(back.cpu); /* it has a column of its own */
    assert_string_equal(back.pids, "100");
    assert_string_equal(back.memory_bandwidth, "10%");
    assert_null(back.network_in);
    resources_unpack((struct slice){"colour=red\0networkIn=1M", 24}, &back);
    assert_string_equal(back.network_in, "1M");
    resources_unpack((struct slice){"networkIn=2M", 12}, &back); /* no list */
    assert_string_equal(back.network_in, "1M");
    back = resources_over(&over, &given);
    assert_string_equal(back.pids, "7");
    assert_string_equal(back.cpu, "1");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fills_up), cmocka_unit_test(test_stopped_keeps_disk),
        cmocka_unit_test(test_change),   cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_factors),  cmocka_unit_test(test_machine),
        cmocka_unit_test(test_pack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
