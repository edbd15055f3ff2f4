/* SPDX-License-Identifier: Apache-2.0 */

#include "network/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"

static struct net_rule rule(const char *text)
{
    struct net_rule out;
    struct error err = {0};
    if (net_rule_parse(slice_of(text), &out, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return out;
}

static void test_texts(void **state)
{
    static const struct {
        const char *text, *canonical;
    } rows[] = {
        {"example.com", "example.com"},
        {"Example.COM.", "example.com"},
        {"*.Example.com", "*.example.com"},
        {"*", "*"},
        {"*:443", "*:443"},
        {"example.com:443", "example.com:443"},
        {"example.com:443/tcp", "example.com:443/tcp"},
        {"example.com:53/udp", "example.com:53/udp"},
        {"host:80-90", "host:80-90"},
        {"host:80-80", "host:80"},
        {"host:*", "host:*"},
        {"host:1-65535", "host:*"},
        {"host:*/udp", "host:*/udp"},
        {"10.0.0.0/8", "10.0.0.0/8"},
        {"10.0.0.0/8:22", "10.0.0.0/8:22"},
        {"203.0.113.7:5432", "203.0.113.7:5432"},
        {"203.0.113.7/32", "203.0.113.7"},
        {"[2001:db8::]/32", "2001:db8::/32"},
        {"2001:db8::/32", "2001:db8::/32"},
        {"[2001:db8::]/32:80-81/tcp", "[2001:db8::]/32:80-81/tcp"},
        {"[2001:db8::7]:5432", "[2001:db8::7]:5432"},
        {"[2001:db8::7]", "2001:db8::7"},
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"::/0", "::/0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct net_rule parsed = rule(rows[i].text), again;
        char text[NET_RULE_TEXT], twice[NET_RULE_TEXT];
        net_rule_text(&parsed, text);
        assert_string_equal(text, rows[i].canonical);
        again = rule(text);
        net_rule_text(&again, twice);
        assert_string_equal(text, twice);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "empty"},
        {"*example.com", "a star stands alone"},
        {"a.*.com", "a star stands alone"},
        {"*.", "a star stands alone"},
        {"**.com", "a star stands alone"},
        {"*.10.0.0.1", "no names below an address"},
        {"127.1", "127.0.0.1"},
        {"0x7f000001:80", "127.0.0.1"},
        {"1.2.3.4.", "1.2.3.4"},
        {"10.0.0.1/8", "did you mean 10.0.0.0/8"},
        {"b\xc3\xbc"
         "cher.example",
         "xn--"},
        {"http://example.com", "not a URL"},
        {"https://example.com/", "not a URL"},
        {"example.com/path", "not an address"},
        {"example.com:0", "no port"},
        {"example.com:", "no port"},
        {"example.com:65536", "no port"},
        {"example.com:90-80", "goes upwards: 80-90"},
        {"example.com:80-", "no port"},
        {"example.com:80/icmp", "/tcp or /udp"},
        {"exa mple.com", "space"},
        {"user@example.com", "no host"},
        {"[2001:db8::7", "bracket"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct net_rule parsed;
        struct error err = {0};
        if (net_rule_parse(slice_of(rows[i].text), &parsed, &err) == 0)
            fail_msg("\"%s\" was taken", rows[i].text);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("\"%s\": %s", rows[i].text, err.message);
    }
    struct net_rule parsed;
    assert_int_equal(net_rule_parse((struct slice){"a.com\0b", 7}, &parsed, NULL), -1);
}

static void test_matches(void **state)
{
    struct net_rule below = rule("*.example.com"), exact = rule("example.com"), any = rule("*"),
                    prefix = rule("203.0.113.0/24:80-90/tcp");
    assert_true(net_rule_has_name(&below, "a.example.com"));
    assert_true(net_rule_has_name(&below, "a.b.example.com"));
    assert_false(net_rule_has_name(&below, "example.com"));
    assert_false(net_rule_has_name(&below, "badexample.com"));
    assert_false(net_rule_has_name(&below, ".example.com"));
    assert_false(net_rule_has_name(&below, "a.example.com.evil.org"));
    assert_true(net_rule_has_name(&exact, "example.com"));
    assert_false(net_rule_has_name(&exact, "www.example.com"));
    assert_true(net_rule_has_name(&any, "whatever"));
    assert_false(net_rule_has_name(&prefix, "203.0.113.7"));
    struct net_address in, out;
    net_address_parse(slice_of("203.0.113.255"), &in, NULL);
    net_address_parse(slice_of("203.0.114.0"), &out, NULL);
    assert_true(net_rule_has_address(&prefix, &in));
    assert_false(net_rule_has_address(&prefix, &out));
    assert_false(net_rule_has_address(&any, &in));
    assert_true(net_rule_has_port(&prefix, NET_TCP, 80) && net_rule_has_port(&prefix, NET_TCP, 90));
    assert_false(net_rule_has_port(&prefix, NET_TCP, 79) ||
                 net_rule_has_port(&prefix, NET_TCP, 91));
    assert_false(net_rule_has_port(&prefix, NET_UDP, 80));
}

static void test_cut_off(void **state)
{
    static const char *const refused[] = {"10.0.0.0/8", "192.168.1.1:22", "169.254.169.254",
                                          "127.0.0.1",  "fe80::1",        "fd00::/8",
                                          "224.0.0.1",  "203.0.113.7",    "2001:db8::/32"};
    static const char *const fine[] = {"0.0.0.0/0", "203.0.112.0/23", "example.com", "localhost",
                                       "::/0"};
    struct net_exceptions exceptions = {0};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct net_rule parsed = rule(refused[i]);
        struct error err = {0};
        assert_int_equal(net_rule_check(&parsed, &exceptions, &err), -1);
        assert_int_equal(err.code, ERROR_NETWORK_REFUSED);
    }
    for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
        struct net_rule parsed = rule(fine[i]);
        assert_int_equal(net_rule_check(&parsed, NULL, NULL), 0);
    }
    net_exceptions_add(&exceptions, slice_of("10.1.0.0/16"), NULL);
    struct net_rule wide = rule("10.0.0.0/8"), other = rule("10.2.0.0/16");
    assert_int_equal(net_rule_check(&wide, &exceptions, NULL), 0); /* part of it is open */
    assert_int_equal(net_rule_check(&other, &exceptions, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_cut_off),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
