/* SPDX-License-Identifier: Apache-2.0 */

/* Who asks, by what proxies say: those who are believed, and everybody who would like to be. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/forwarded.h"
#include "base/cleanup.h"

#define PROXY  "10.0.0.1:4000"
#define PLAIN  "X-Forwarded-For"
#define PAIRS  "Forwarded"
#define NOBODY FORWARDED_UNKNOWN

struct row {
    const char *peer;
    struct http_header headers[3];
    const char *expected;
};

static void check(const struct proxies *proxies, const struct row *row)
{
    struct arena *arena = arena_new();
    size_t count = 0;
    while (count < ARRAY_LEN(row->headers) && row->headers[count].name != NULL)
        count++;
    assert_string_equal(forwarded_peer(arena, proxies, row->peer, row->headers, count),
                        row->expected);
    arena_free(arena);
}

static struct proxies trusted(void)
{
    struct proxies proxies = {.count = 0};
    assert_int_equal(proxies_add(&proxies, "10.0.0.0/8, 127.0.0.1,fd00::/8", NULL), 0);
    assert_int_equal(proxies.count, 3);
    return proxies;
}

static void test_who_asks(void **state)
{
    static const struct row rows[] = {
        {PROXY, {{NULL, NULL}}, PROXY}, /* it asks for itself */
        {PROXY, {{PLAIN, ""}}, PROXY},
        {PROXY, {{PLAIN, "192.0.2.7"}}, "192.0.2.7:0"},
        {PROXY, {{"x-forwarded-FOR", "192.0.2.7:99"}}, "192.0.2.7:99"},
        {"127.0.0.1:1", {{PLAIN, "192.0.2.7"}}, "192.0.2.7:0"},
        {"[fd00::1]:1", {{PLAIN, "2001:db8::7"}}, "[2001:db8::7]:0"},
        {PROXY, {{PLAIN, "[2001:db8::7]"}}, "[2001:db8::7]:0"},
        {PROXY, {{PLAIN, "[2001:db8::7]:8"}}, "[2001:db8::7]:8"},
        {PROXY, {{PLAIN, "::ffff:192.0.2.7"}}, "192.0.2.7:0"},
        /* from the right, past other proxies */
        {PROXY, {{PLAIN, "192.0.2.7, 10.0.0.2,\t10.0.0.3 "}}, "192.0.2.7:0"},
        {PROXY, {{PLAIN, "192.0.2.7"}, {PLAIN, "10.0.0.2"}}, "192.0.2.7:0"},
        {PROXY, {{PLAIN, "192.0.2.7,, ,"}}, "192.0.2.7:0"},
        {PROXY, {{PLAIN, "10.0.0.9, 10.0.0.2"}}, "10.0.0.9:0"}, /* all of them are proxies */
        {PROXY, {{PAIRS, "for=192.0.2.7;proto=https;by=10.0.0.1"}}, "192.0.2.7:0"},
        {PROXY, {{PAIRS, "proto=http; FOR=\"192.0.2.7:99\""}}, "192.0.2.7:99"},
        {PROXY, {{PAIRS, "for=\"[2001:db8::7]:5\", for=10.0.0.2"}}, "[2001:db8::7]:5"},
        {PROXY, {{PAIRS, "for=192.0.2.7"}, {PLAIN, "192.0.2.7"}}, "192.0.2.7:0"},
    };
    struct proxies proxies = trusted();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(&proxies, &rows[i]);
}

static void test_who_is_not_believed(void **state)
{
    static const struct row rows[] = {
        /* what is said by somebody who is no proxy */
        {"192.0.2.1:5", {{PLAIN, "10.0.0.1"}}, "192.0.2.1:5"},
        {"192.0.2.1:5", {{PLAIN, "127.0.0.1"}, {PAIRS, "for=127.0.0.1"}}, "192.0.2.1:5"},
        {"127.0.0.2:5", {{PLAIN, "192.0.2.7"}}, "127.0.0.2:5"},
        {"unix", {{PLAIN, "192.0.2.7"}}, "unix"},
        /* and what he wrote before it came to one */
        {PROXY, {{PLAIN, "127.0.0.1, 192.0.2.7"}}, "192.0.2.7:0"},
        {PROXY, {{PLAIN, "10.0.0.5, 192.0.2.7, 10.0.0.2"}}, "192.0.2.7:0"},
        {PROXY, {{PLAIN, "198.51.100.1"}, {PLAIN, "192.0.2.7"}}, "192.0.2.7:0"},
        {PROXY, {{PLAIN, "\", 192.0.2.7"}}, "192.0.2.7:0"},
        {PROXY, {{PAIRS, "for=\"127.0.0.1, for=192.0.2.7"}}, "192.0.2.7:0"},
        {PROXY, {{PAIRS, "for=\", for=\"[2001:db8::7]\""}}, "[2001:db8::7]:0"},
        /* somebody, but who? */
        {PROXY, {{PLAIN, "127.0.0.1"}}, NOBODY},
        {PROXY, {{PLAIN, "127.8.8.8, 10.0.0.2"}}, NOBODY},
        {PROXY, {{PLAIN, "::1"}}, NOBODY},
        {PROXY, {{PLAIN, "::ffff:127.0.0.1"}}, NOBODY},
        {PROXY, {{PLAIN, "0.0.0.0"}}, NOBODY},
        {PROXY, {{PLAIN, "::"}}, NOBODY},
        {PROXY, {{PLAIN, "unknown"}}, NOBODY},
        {PROXY, {{PLAIN, "unix"}}, NOBODY},
        {PROXY, {{PLAIN, "192.0.2.7, localhost"}}, NOBODY},
        {PROXY, {{PLAIN, "192.0.2.7 10.0.0.2"}}, NOBODY},
        {PROXY, {{PLAIN, "192.0.2.7:"}}, NOBODY},
        {PROXY, {{PLAIN, "192.0.2.7:65536"}}, NOBODY},
        {PROXY, {{PLAIN, "192.0.2.7:-1"}}, NOBODY},
        {PROXY, {{PLAIN, "192.0.2.07"}}, NOBODY},
        {PROXY, {{PLAIN, "0300.0.2.7"}}, NOBODY},
        {PROXY, {{PLAIN, "3221225991"}}, NOBODY},
        {PROXY, {{PLAIN, "[192.0.2.7]"}}, NOBODY},
        {PROXY, {{PLAIN, "[2001:db8::7"}}, NOBODY},
        {PROXY, {{PLAIN, "[2001:db8::7]x"}}, NOBODY},
        {PROXY, {{PLAIN, "fe80::1%eth0"}}, NOBODY},
        {PROXY, {{PAIRS, "for=_hidden"}}, NOBODY},
        {PROXY, {{PAIRS, "for=unknown"}}, NOBODY},
        {PROXY, {{PAIRS, "by=192.0.2.7"}}, NOBODY},
        {PROXY, {{PAIRS, "for=192.0.2.7;for=192.0.2.8"}}, NOBODY},
        {PROXY, {{PAIRS, "for=\"192.0.2.7"}}, NOBODY},
        {PROXY, {{PAIRS, "for="}}, NOBODY},
        /* two fields that do not agree: which of them the proxy wrote is not ours to guess */
        {PROXY, {{PAIRS, "for=192.0.2.7"}, {PLAIN, "192.0.2.8"}}, NOBODY},
        {PROXY, {{PAIRS, "for=_x"}, {PLAIN, "192.0.2.8"}}, NOBODY},
    };
    struct proxies proxies = trusted();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(&proxies, &rows[i]);
}

/* However much is written, each byte is looked at a few times at most. */
static void test_long_lists(void **state)
{
    enum { LEN = 60000 };
    struct proxies proxies = trusted();
    static const char *const pieces[] = {",", "10.0.0.1,", "for=10.0.0.1,", "\"", ";"};
    char *text = malloc(LEN + 1);
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        size_t len = strlen(pieces[i]);
        for (size_t at = 0; at < LEN; at++)
            text[at] = pieces[i][at % len];
        text[LEN] = '\0';
        const struct http_header headers[] = {{PLAIN, text}, {PAIRS, text}};
        struct arena *arena = arena_new();
        assert_non_null(forwarded_peer(arena, &proxies, PROXY, headers, 2));
        arena_free(arena);
    }
    free(text);
}

static void test_proxies(void **state)
{
    static const char *const bad[] = {
        "x",           "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/8,y",         "localhost",
        "10.0.0.1:80", " ",           ",",          "10.0.0.0/8 11.0.0.0/8"};
    struct error err;
    struct proxies proxies = {.count = 0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(proxies_add(&proxies, bad[i], &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_int_equal(proxies.count, 0); /* all or none */
    }
    assert_int_equal(proxies_add(&proxies, "", &err), 0);
    for (size_t i = 0; i < TRUSTED_PROXIES_MAX; i++)
        assert_int_equal(proxies_add(&proxies, "192.0.2.1", &err), 0);
    assert_int_equal(proxies_add(&proxies, "192.0.2.1", &err), -1);
    assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_asks),
        cmocka_unit_test(test_who_is_not_believed),
        cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_proxies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
