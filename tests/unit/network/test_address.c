/* SPDX-License-Identifier: Apache-2.0 */

#include "network/address.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"

static struct net_address address(const char *text)
{
    struct net_address out;
    assert_int_equal(net_address_parse(slice_of(text), &out, NULL), 0);
    return out;
}

static void test_addresses(void **state)
{
    static const struct {
        const char *text, *canonical;
    } good[] = {
        {"203.0.113.7", "203.0.113.7"},     {"::", "::"},
        {"2001:DB8:0:0::7", "2001:db8::7"}, {"::ffff:192.0.2.1", "192.0.2.1"},
        {"::ffff:c000:201", "192.0.2.1"},   {"255.255.255.255", "255.255.255.255"},
    };
    static const char *const bad[] = {"",       "1.2.3",   "1.2.3.4.",   "01.2.3.4", "1.2.3.256",
                                      "0x7f.1", "[::1]",   "fe80::1%lo", " 1.2.3.4", "1.2.3.4 ",
                                      "::1::",  "example", "1.2.3.4/8",  ":",        "1.2.3.4\n"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        char text[NET_ADDRESS_TEXT];
        struct net_address parsed = address(good[i].text);
        net_address_text(&parsed, text);
        assert_string_equal(text, good[i].canonical);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct net_address parsed;
        struct error err = {0};
        assert_int_equal(net_address_parse(slice_of(bad[i]), &parsed, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
    struct net_address parsed;
    assert_int_equal(net_address_parse((struct slice){"1.2.3.4\0x", 9}, &parsed, NULL), -1);
}

static void test_sockets(void **state)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr other = {.sa_family = AF_UNIX};
    struct net_address got, want = address("10.1.2.3");
    inet_pton(AF_INET6, "::ffff:10.1.2.3", &in6.sin6_addr);
    assert_true(net_address_of_socket((const struct sockaddr *)&in6, &got));
    assert_true(net_address_eq(&got, &want)); /* no way around a rule by another family */
    assert_false(net_address_of_socket(&other, &got));
}

static void test_prefixes(void **state)
{
    static const struct {
        const char *text, *canonical;
    } good[] = {
        {"10.0.0.0/8", "10.0.0.0/8"},
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"203.0.113.7", "203.0.113.7"},
        {"203.0.113.7/32", "203.0.113.7"},
        {"[2001:db8::]/32", "2001:db8::/32"},
        {"2001:db8::/32", "2001:db8::/32"},
        {"::/0", "::/0"},
        {"2001:db8::1/128", "2001:db8::1"},
        {"198.18.0.0/15", "198.18.0.0/15"},
    };
    static const char *const bad[] = {
        "10.0.0.1/8",  "10.0.0.0/33",   "10.0.0.0/",          "10.0.0.0/08", "10.0.0.0/8/8",
        "10.0.0.0/-1", "10.0.0.0/+8",   "2001:db8::1/32",     "::/129",      "[10.0.0.0]/8",
        "/8",          "example.com/8", "::ffff:1.2.3.0/120", "10/8",        "198.19.0.0/14"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct net_prefix prefix;
        char text[NET_PREFIX_TEXT];
        assert_int_equal(net_prefix_parse(slice_of(good[i].text), &prefix, NULL), 0);
        net_prefix_text(&prefix, text);
        assert_string_equal(text, good[i].canonical);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct net_prefix prefix;
        struct error err = {0};
        if (net_prefix_parse(slice_of(bad[i]), &prefix, &err) == 0)
            fail_msg("%s was taken", bad[i]);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
    struct net_prefix prefix;
    struct error err = {0};
    net_prefix_parse(slice_of("10.0.0.1/8"), &prefix, &err);
    assert_non_null(strstr(err.message, "did you mean 10.0.0.0/8?"));
}

static void test_ranges(void **state)
{
    static const char *const cut[] = {"0.0.0.0",
                                      "10.255.255.255",
                                      "100.64.0.1",
                                      "100.127.255.255",
                                      "127.0.0.1",
                                      "127.255.0.1",
                                      "169.254.169.254",
                                      "168.63.129.16",
                                      "172.16.0.1",
                                      "172.31.255.255",
                                      "192.0.0.1",
                                      "192.0.2.1",
                                      "192.88.99.1",
                                      "192.168.0.1",
                                      "198.18.0.1",
                                      "198.19.255.255",
                                      "198.51.100.255",
                                      "203.0.113.7",
                                      "224.0.0.1",
                                      "255.255.255.255",
                                      "240.0.0.1",
                                      "::",
                                      "::1",
                                      "::127.0.0.1",
                                      "::ffff:10.0.0.1",
                                      "64:ff9b::a00:1",
                                      "64:ff9b:1::1",
                                      "100::1",
                                      "2001::1",
                                      "2001:1ff::1",
                                      "2001:db8:ffff::1",
                                      "2002:a00:1::1",
                                      "3fff:fff::1",
                                      "4000::1",
                                      "8000::1",
                                      "c000::1",
                                      "e000::1",
                                      "f000::1",
                                      "f800::1",
                                      "fc00::1",
                                      "fd00:ec2::254",
                                      "fe80::1",
                                      "fec0::1",
                                      "ff02::1"};
    static const char *const open[] = {
        "1.1.1.1",     "9.255.255.255",  "11.0.0.0",    "100.63.255.255",  "100.128.0.0",
        "128.0.0.0",   "172.15.255.255", "172.32.0.0",  "192.0.1.0",       "192.167.255.255",
        "192.169.0.0", "198.17.255.255", "198.20.0.0",  "223.255.255.255", "203.0.112.7",
        "203.0.114.0", "192.0.3.0",      "198.51.99.7", "198.51.101.0",    "2000::1",
        "2001:200::1", "2001:db7::1",    "2001:db9::1", "2606:4700::1111", "3fff:1000::1"};
    for (size_t i = 0; i < ARRAY_LEN(cut); i++) {
        struct net_address parsed = address(cut[i]);
        if (!net_address_forbidden(&parsed, NULL))
            fail_msg("%s is reachable", cut[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(open); i++) {
        struct net_address parsed = address(open[i]);
        if (net_address_forbidden(&parsed, NULL))
            fail_msg("%s is cut off", open[i]);
    }
}

static void test_exceptions(void **state)
{
    static const char *const never[] = {
        "169.254.169.254", "127.0.0.1",     "0.0.0.0/0",    "10.0.0.0/7", "203.0.113.0/24",
        "fe80::/10",       "::1",           "224.0.0.1",    "2002::/16",  "fd00::1/64",
        "db.corp",         "fd00:ec2::/32", "fd00:ec2::254"};
    struct net_exceptions exceptions = {0};
    for (size_t i = 0; i < ARRAY_LEN(never); i++) {
        struct error err = {0};
        assert_int_equal(net_exceptions_add(&exceptions, slice_of(never[i]), &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
    assert_int_equal(exceptions.count, 0);
    assert_int_equal(net_exceptions_add(&exceptions, slice_of("10.1.0.0/16"), NULL), 0);
    assert_int_equal(net_exceptions_add(&exceptions, slice_of("fd12::/16"), NULL), 0);
    struct net_address in = address("10.1.2.3"), out = address("10.2.2.3"),
                       in6 = address("fd12::1");
    assert_false(net_address_forbidden(&in, &exceptions));
    assert_false(net_address_forbidden(&in6, &exceptions));
    assert_true(net_address_forbidden(&out, &exceptions));
    /* A metadata service is cut off where all around it is opened. */
    struct net_address metadata = address("fd00:ec2::254"), beside = address("fd00:ec3::1");
    assert_int_equal(net_exceptions_add(&exceptions, slice_of("fd00::/8"), NULL), 0);
    assert_true(net_address_forbidden(&metadata, &exceptions));
    assert_false(net_address_forbidden(&beside, &exceptions));
    struct error err = {0};
    while (exceptions.count < NET_EXCEPTIONS_MAX)
        assert_int_equal(net_exceptions_add(&exceptions, slice_of("10.1.0.0/16"), &err), 0);
    assert_int_equal(net_exceptions_add(&exceptions, slice_of("10.1.0.0/16"), &err), -1);
    assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
}

static void test_overlap(void **state)
{
    struct net_prefix a, b, c;
    net_prefix_parse(slice_of("10.0.0.0/8"), &a, NULL);
    net_prefix_parse(slice_of("10.1.0.0/16"), &b, NULL);
    net_prefix_parse(slice_of("11.0.0.0/8"), &c, NULL);
    assert_true(net_prefix_within(&b, &a) && !net_prefix_within(&a, &b));
    assert_true(net_prefix_overlap(&a, &b) && net_prefix_overlap(&b, &a));
    assert_false(net_prefix_overlap(&a, &c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),  cmocka_unit_test(test_sockets),
        cmocka_unit_test(test_prefixes),   cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_exceptions), cmocka_unit_test(test_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
