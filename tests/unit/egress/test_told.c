/* SPDX-License-Identifier: Apache-2.0 */

/* Which name an address was told for: the last one, of so many addresses. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include "egress/told.h"

static struct net_address address(unsigned n)
{
    const unsigned char bytes[] = {45, 0, (unsigned char)(n >> 8), (unsigned char)n};
    return net_address_of(NET_IPV4, bytes);
}

static void test_names(void **state)
{
    struct told told = {0};
    const struct net_address one = address(1), two = address(2);
    assert_null(told_name(&told, &one));
    told_add(&told, &one, "a.example");
    told_add(&told, &two, "b.example");
    assert_string_equal(told_name(&told, &one), "a.example");
    told_add(&told, &one, "c.example");
    told_add(&told, &one, told_name(&told, &one));
    assert_string_equal(told_name(&told, &one), "c.example");
    assert_string_equal(told_name(&told, &two), "b.example");
    told_release(&told);
    assert_null(told_name(&told, &two));
}

static void test_oldest_go(void **state)
{
    struct told told = {0};
    for (unsigned i = 0; i <= TOLD_MAX; i++) {
        char name[32];
        const struct net_address each = address(i);
        snprintf(name, sizeof(name), "n%u.example", i);
        told_add(&told, &each, name);
    }
    const struct net_address first = address(0), second = address(1), last = address(TOLD_MAX);
    assert_null(told_name(&told, &first));
    assert_string_equal(told_name(&told, &second), "n1.example");
    assert_string_equal(told_name(&told, &last), "n128.example");
    told_release(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_oldest_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
