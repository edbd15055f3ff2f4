/* SPDX-License-Identifier: Apache-2.0 */

/* Whom a stranger can make the server call: nobody who is not on the public Internet. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "http/address_policy.h"
#include "network/address.h"

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

static union address parse(const char *text)
{
    union address a;
    memset(&a, 0, sizeof(a));
    if (inet_pton(AF_INET, text, &a.in.sin_addr) == 1) {
        a.any.sa_family = AF_INET;
    } else {
        a.any.sa_family = AF_INET6;
        if (inet_pton(AF_INET6, text, &a.in6.sin6_addr) != 1)
            fail_msg("%s", text);
    }
    return a;
}

static void test_refused(void **state)
{
    static const char *const rows[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "169.254.170.2",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:0:53aa:64c:0:fb:f5ff:fffe",
        "2001:10::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:808:808::1",
        "3fff::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "4000::1",
        "fd00:ec2::254",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        union address a = parse(rows[i]);
        if (address_is_public(&a.any))
            fail_msg("%s", rows[i]);
    }
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    assert_false(address_is_public((struct sockaddr *)&un));
}

static void test_allowed(void **state)
{
    static const char *const rows[] = {
        "1.1.1.1",         "8.8.8.8",         "9.255.255.255",
        "11.0.0.0",        "100.63.255.255",  "100.128.0.0",
        "128.0.0.1",       "168.63.129.15",   "168.63.129.17",
        "169.253.255.255", "172.15.255.255",  "172.32.0.0",
        "192.0.1.1",       "192.167.255.255", "198.17.255.255",
        "198.20.0.0",      "223.255.255.255", "2001:4860:4860::8888",
        "2606:4700::1111", "2a00::1",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        union address a = parse(rows[i]);
        if (!address_is_public(&a.any))
            fail_msg("%s", rows[i]);
    }
}

/* A range's first address and its last one, and each with one bit of it the other way. */
static union address in_range(const struct net_prefix *prefix, bool last, unsigned other_bit)
{
    union address a;
    unsigned char bytes[16];
    unsigned total = prefix->address.family == NET_IPV4 ? 32 : 128;
    memset(&a, 0, sizeof(a));
    memcpy(bytes, prefix->address.bytes, sizeof(bytes));
    for (unsigned bit = prefix->bits; bit < total; bit++)
        if (last != (bit == other_bit))
            bytes[bit / 8] |= (unsigned char)(0x80 >> bit % 8);
    a.any.sa_family = total == 32 ? AF_INET : AF_INET6;
    memcpy(total == 32 ? (void *)&a.in.sin_addr : (void *)&a.in6.sin6_addr, bytes, total / 8);
    return a;
}

static void test_all_that_sandboxes_are_cut_off_from(void **state)
{
    for (size_t i = 0; i < net_range_count; i++)
        for (unsigned bit = 0; bit <= 128; bit++)
            for (int last = 0; last < 2; last++) {
                union address a = in_range(&net_ranges[i].prefix, last, bit);
                if (address_is_public(&a.any))
                    fail_msg("row %zu (%s), bit %u", i, net_ranges[i].name, bit);
            }
}

static void test_ours(void **state)
{
    union address loopback = parse("127.0.0.1"), other = parse("192.0.2.77");
    assert_true(address_is_ours(&loopback.any));
    assert_false(address_is_ours(&other.any));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_all_that_sandboxes_are_cut_off_from),
        cmocka_unit_test(test_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
