/* SPDX-License-Identifier: Apache-2.0 */

/* When limits are lowered, and to what. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "sandbox/auto_lower.h"

#define MIB (UINT64_C(1) << 20)

#define LIST(text) ((struct slice){text, sizeof(text)})

static const struct spec_limits limits = {
    .cpu_millis = 2000, .memory_bytes = 1024 * MIB, .disk_bytes = 1024 * MIB, .pids = 100};

static void test_parse(void **state)
{
    struct auto_lower lower;
    struct error err;
    assert_int_equal(auto_lower_parse(LIST("factor=1.5\0memory=64Mi"), &lower, &err), 0);
    assert_int_equal(lower.factor_millis, 1500);
    assert_int_equal(lower.minimum.memory_bytes, 64 * MIB);
    static const struct slice wrong[] = {
        LIST("factor=1"),
        LIST("factor=0.9"),
        LIST("factor=x"),
        LIST("factor=101"),
        LIST("memory=64Mi"),
        LIST("factor=2\0memory=x"),
        LIST("factor=2\0pids=10"),
        LIST("factor=2\0colour=10"),
        LIST("factor"),
        LIST("factor=-2"),
        LIST("factor="),
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(auto_lower_parse(wrong[i], &lower, &err), -1);
    assert_int_equal(auto_lower_parse((struct slice){"factor=2", 8}, &lower, &err), -1);
}

static void push(struct auto_lower *lower, size_t count, double cpu, double memory, double disk)
{
    for (size_t i = 0; i < count; i++)
        auto_lower_push(lower, cpu, memory * (double)MIB, disk * (double)MIB);
}

static void test_the_most_of_five(void **state)
{
    struct auto_lower lower = {.factor_millis = 1500};
    struct spec_limits wanted;
    push(&lower, 4, 100, 100, 1000);
    assert_false(auto_lower_wants(&lower, &limits, &wanted)); /* four are not five */
    push(&lower, 1, 400, 50, 10);
    assert_true(auto_lower_wants(&lower, &limits, &wanted));
    assert_int_equal(wanted.cpu_millis, 600);
    assert_int_equal(wanted.memory_bytes, 150 * MIB);
    assert_int_equal(wanted.disk_bytes, limits.disk_bytes); /* 1500 would be more */
    assert_int_equal(wanted.pids, limits.pids);
    push(&lower, 5, 100, 10, 10); /* the old ones are forgotten */
    assert_true(auto_lower_wants(&lower, &limits, &wanted));
    assert_int_equal(wanted.cpu_millis, 150);
    assert_int_equal(wanted.memory_bytes, 16 * MIB); /* the least there is */
    assert_int_equal(wanted.disk_bytes, 16 * MIB);
}

static void test_minimum_and_little(void **state)
{
    struct auto_lower lower = {.factor_millis = 2000,
                               .minimum = {.cpu_millis = 1900, .memory_bytes = 512 * MIB}};
    struct spec_limits wanted;
    push(&lower, 5, 0, 0, 1000);
    assert_true(auto_lower_wants(&lower, &limits, &wanted));
    assert_int_equal(wanted.cpu_millis, 2000); /* less than a tenth is left alone */
    assert_int_equal(wanted.memory_bytes, 512 * MIB);
    lower.minimum.memory_bytes = 2048 * MIB; /* nothing is ever raised */
    assert_false(auto_lower_wants(&lower, &limits, &wanted));
}

static void test_unknown(void **state)
{
    struct auto_lower lower = {.factor_millis = 2000};
    struct spec_limits wanted;
    push(&lower, 5, 100, NAN, NAN);
    assert_true(auto_lower_wants(&lower, &limits, &wanted));
    assert_int_equal(wanted.cpu_millis, 200);
    assert_int_equal(wanted.memory_bytes, limits.memory_bytes);
    assert_int_equal(wanted.disk_bytes, limits.disk_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_the_most_of_five),
        cmocka_unit_test(test_minimum_and_little),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
