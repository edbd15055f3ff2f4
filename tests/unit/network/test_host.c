/* SPDX-License-Identifier: Apache-2.0 */

#include "network/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"

static void test_names(void **state)
{
    static const struct {
        const char *text, *name;
    } rows[] = {
        {"example.com", "example.com"},
        {"EXAMPLE.Com", "example.com"},
        {"example.com.", "example.com"},
        {"localhost", "localhost"},
        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        {"_dmarc.example.com", "_dmarc.example.com"},
        {"1.2.3.4.example", "1.2.3.4.example"},
        {"1e100.net", "1e100.net"},
        {"a0xg", "a0xg"},
        {"3com", "3com"},
        {"0xabcg", "0xabcg"},
        {"x.beef", "x.beef"}, /* hexadecimal digits, but no 0x */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct net_host host;
        assert_int_equal(net_host_parse(slice_of(rows[i].text), &host, NULL), 0);
        assert_int_equal(host.kind, NET_HOST_NAME);
        assert_string_equal(host.name, rows[i].name);
    }
}

static void test_literals(void **state)
{
    static const struct {
        const char *text, *address;
    } rows[] = {
        {"127.0.0.1", "127.0.0.1"},
        {"127.0.0.1.", "127.0.0.1"},
        {"127.1", "127.0.0.1"},
        {"127.0.1", "127.0.0.1"},
        {"2130706433", "127.0.0.1"},
        {"0x7f000001", "127.0.0.1"},
        {"0X7F.0x0.0.1", "127.0.0.1"},
        {"017700000001", "127.0.0.1"},
        {"0177.0.0.01", "127.0.0.1"},
        {"0", "0.0.0.0"},
        {"0x", "0.0.0.0"},
        {"1.0xffffff", "1.255.255.255"},
        {"4294967295", "255.255.255.255"},
        {"[::1]", "::1"},
        {"::1", "::1"},
        {"[::ffff:127.0.0.1]", "127.0.0.1"},
        {"[0:0:0:0:0:ffff:7f00:1]", "127.0.0.1"},
        {"[2001:DB8::1]", "2001:db8::1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct net_host host;
        char text[NET_ADDRESS_TEXT];
        if (net_host_parse(slice_of(rows[i].text), &host, NULL) < 0)
            fail_msg("%s was refused", rows[i].text);
        assert_int_equal(host.kind, NET_HOST_ADDRESS);
        net_address_text(&host.address, text);
        assert_string_equal(text, rows[i].address);
    }
}

static void test_refused(void **state)
{
    static const char *const rows[] = {
        "",
        ".",
        "..",
        "a..b",
        ".example.com",
        "example.com..",
        "-a.com",
        "a-.com",
        "exa mple.com",
        "example.com ",
        "a\tb",
        "a/b",
        "a%62",
        "user@host",
        "a,b",
        "a:b",
        "1.2.3.4.5",
        "256.1.1.1",
        "4294967296",
        "0x100000000",
        "09",
        "1.08",
        "example.1",
        "a.0x7f",
        "[::1",
        "[::1]x",
        "[]",
        "[1.2.3.4]",
        "fe80::1%eth0",
        "[v1.x]",
        "b\xc3\xbc"
        "cher.example",
        "\xef\xbc\x91.1.1.1",
        "a\xe3\x80\x82"
        "com",
        "*",
        "a.*.com",
        "a\\b",
        "a\"b",
        "a\x7f",
        "\x01",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com", /* 64 */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct net_host host = {.kind = 77};
        struct error err = {0};
        if (net_host_parse(slice_of(rows[i]), &host, &err) == 0)
            fail_msg("\"%s\" was taken", rows[i]);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_int_equal(host.kind, 77);
        for (const char *c = err.message; *c != '\0'; c++)
            assert_true(*c != '\n' && *c != '\x01' && *c != '\t');
    }
    struct net_host host;
    assert_int_equal(net_host_parse((struct slice){"good.com\0.evil.com", 18}, &host, NULL), -1);
    char longest[255];
    memset(longest, 'a', sizeof(longest));
    for (size_t i = 50; i < sizeof(longest); i += 50)
        longest[i] = '.';
    assert_int_equal(net_host_parse((struct slice){longest, 253}, &host, NULL), 0);
    assert_int_equal(strlen(host.name), 253);
    assert_int_equal(net_host_parse((struct slice){longest, 254}, &host, NULL), -1);
}

static void test_authorities(void **state)
{
    static const struct {
        const char *text, *name;
        unsigned port;
    } good[] = {
        {"Example.com", "example.com", 80},
        {"example.com:8080", "example.com", 8080},
        {"example.com.:443", "example.com", 443},
        {"[::1]", "::1", 80},
        {"[::1]:81", "::1", 81},
        {"127.1:82", "127.0.0.1", 82},
    };
    static const char *const bad[] = {"",        ":80",     "a:",     "a:0",    "a:65536",
                                      "a:+1",    "a:80:80", "::1:80", "a:080",  "a: 80",
                                      "[::1]80", "a:80 ",   "a:8x",   "[::1]:", "u@a:80"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct net_host host;
        uint16_t port;
        char text[NET_ADDRESS_TEXT];
        assert_int_equal(net_authority_parse(slice_of(good[i].text), 80, &host, &port, NULL), 0);
        if (host.kind == NET_HOST_ADDRESS)
            net_address_text(&host.address, text);
        assert_string_equal(host.kind == NET_HOST_NAME ? host.name : text, good[i].name);
        assert_int_equal(port, good[i].port);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct net_host host;
        uint16_t port;
        if (net_authority_parse(slice_of(bad[i]), 80, &host, &port, NULL) == 0)
            fail_msg("\"%s\" was taken", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_authorities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
