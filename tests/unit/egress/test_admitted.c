/* SPDX-License-Identifier: Apache-2.0 */

/* What was admitted: known for its time, forgotten with the policy, never relied on too early. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "egress/admitted.h"

static struct net_address address(unsigned char last)
{
    const unsigned char bytes[4] = {45, 91, 0, last};
    return net_address_of(NET_IPV4, bytes);
}

static void test_known(void **state)
{
    struct admitted admitted = {0};
    const struct net_address one = address(1), two = address(2);
    const struct net_admission ports = {NET_TCP, 22, 22}, udp = {NET_UDP, 22, 22},
                               more = {NET_TCP, 22, 23};
    admitted_reset(&admitted, 1000);
    admitted_add(&admitted, &one, &ports, 60000, 2000); /* too early */
    assert_false(admitted_has(&admitted, &one, &ports, 50000));
    int64_t now = 1000 + ADMITTED_SETTLE_MS;
    admitted_add(&admitted, &one, &ports, 60000, now);
    assert_true(admitted_has(&admitted, &one, &ports, 60000));
    assert_false(admitted_has(&admitted, &one, &ports, 60001));
    assert_false(admitted_has(&admitted, &two, &ports, 50000));
    assert_false(admitted_has(&admitted, &one, &udp, 50000));
    assert_false(admitted_has(&admitted, &one, &more, 50000));
    admitted_add(&admitted, &one, &ports, 90000, now);
    assert_true(admitted_has(&admitted, &one, &ports, 90000));
    admitted_reset(&admitted, now);
    assert_false(admitted_has(&admitted, &one, &ports, 50000));
    admitted_release(&admitted);
}

static void test_oldest_go(void **state)
{
    struct admitted admitted = {0};
    struct net_admission ports = {NET_TCP, 1, 1};
    const struct net_address one = address(1);
    for (uint16_t port = 1; port <= ADMITTED_MAX + 1; port++) {
        ports.low = ports.high = port;
        admitted_add(&admitted, &one, &ports, 60000, 20000);
    }
    assert_true(admitted_has(&admitted, &one, &ports, 60000));
    ports.low = ports.high = 2;
    assert_true(admitted_has(&admitted, &one, &ports, 60000));
    ports.low = ports.high = 1;
    assert_false(admitted_has(&admitted, &one, &ports, 60000));
    admitted_release(&admitted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_oldest_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
