/* SPDX-License-Identifier: Apache-2.0 */

#include "network/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* "allowlist +example.com -a.example.com": a mode, what is allowed and what is denied. */
static struct net_policy policy(const char *text)
{
    struct net_policy out = {0};
    size_t len = strcspn(text, " ");
    assert_int_equal(net_mode_parse((struct slice){text, len}, &out.mode, NULL), 0);
    for (text += len; *text == ' '; text += len) {
        text++;
        len = strcspn(text, " ");
        struct error err = {0};
        if (net_policy_add(&out, *text == '+' ? NET_ALLOW : NET_DENY,
                           (struct slice){text + 1, len - 1}, &err) < 0)
            fail_msg("%s: %s", text, err.message);
    }
    return out;
}

static struct net_address address(const char *text)
{
    struct net_address out;
    assert_int_equal(net_address_parse(slice_of(text), &out, NULL), 0);
    return out;
}

static void test_names(void **state)
{
    static const struct {
        const char *policy, *name;
        enum net_protocol protocol;
        unsigned port;
        enum net_verdict verdict;
    } rows[] = {
        {"none", "example.com", NET_TCP, 443, NET_REFUSED_MODE},
        {"isolated", "example.com", NET_TCP, 443, NET_ALLOWED},
        {"full", "example.com", NET_TCP, 22, NET_ALLOWED},
        {"full", "example.com", NET_UDP, 443, NET_ALLOWED},
        {"full -*.example.com", "a.example.com", NET_TCP, 443, NET_REFUSED_DENIED},
        {"full -*.example.com", "example.com", NET_TCP, 443, NET_ALLOWED},
        {"full -*.example.com", "example.com", NET_UDP, 443, NET_REFUSED_QUIC},
        {"full -*.example.com +b.example.com", "b.example.com", NET_TCP, 443, NET_ALLOWED},
        {"full -example.com:22", "example.com", NET_TCP, 443, NET_ALLOWED},
        {"full -example.com:22", "example.com", NET_TCP, 22, NET_REFUSED_DENIED},
        {"allowlist", "example.com", NET_TCP, 443, NET_REFUSED_UNLISTED},
        {"allowlist +example.com", "example.com", NET_TCP, 443, NET_ALLOWED},
        {"allowlist +example.com", "example.com", NET_TCP, 80, NET_ALLOWED},
        {"allowlist +example.com", "example.com", NET_TCP, 22, NET_REFUSED_UNLISTED},
        {"allowlist +example.com", "example.com", NET_UDP, 80, NET_REFUSED_UNLISTED},
        {"allowlist +example.com", "example.com", NET_UDP, 443, NET_REFUSED_QUIC},
        {"allowlist +example.com:*", "example.com", NET_UDP, 443, NET_REFUSED_QUIC},
        {"allowlist +example.com:22", "example.com", NET_TCP, 22, NET_ALLOWED},
        {"allowlist +example.com:22", "example.com", NET_TCP, 443, NET_REFUSED_UNLISTED},
        {"allowlist +example.com", "www.example.com", NET_TCP, 443, NET_REFUSED_UNLISTED},
        {"allowlist +*.example.com", "www.example.com", NET_TCP, 443, NET_ALLOWED},
        {"allowlist +*.example.com -www.example.com", "www.example.com", NET_TCP, 443,
         NET_REFUSED_DENIED},
        {"allowlist +* -*.evil.org", "a.evil.org", NET_TCP, 80, NET_REFUSED_DENIED},
        {"allowlist +0.0.0.0/0", "example.com", NET_TCP, 443, NET_REFUSED_UNLISTED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(net_policy_release) struct net_policy p = policy(rows[i].policy);
        enum net_verdict got =
            net_policy_name(&p, rows[i].name, rows[i].protocol, (uint16_t)rows[i].port);
        if (got != rows[i].verdict)
            fail_msg("%s: %s:%u: %s", rows[i].policy, rows[i].name, rows[i].port,
                     net_verdict_name(got));
    }
}

static void test_lookups(void **state)
{
    static const struct {
        const char *policy, *name;
        enum net_verdict verdict;
    } rows[] = {
        {"none", "example.com", NET_REFUSED_MODE},
        {"isolated", "example.com", NET_ALLOWED},
        {"isolated -example.com", "example.com", NET_REFUSED_DENIED},
        {"isolated -example.com +example.com:22", "example.com", NET_ALLOWED},
        {"isolated -example.com:22", "example.com", NET_ALLOWED},
        {"allowlist +example.com:5432", "example.com", NET_ALLOWED},
        {"allowlist +example.com -example.com:80", "example.com", NET_ALLOWED},
        {"allowlist +*.example.com -a.example.com", "a.example.com", NET_REFUSED_DENIED},
        {"allowlist +45.91.113.0/24", "example.com", NET_REFUSED_UNLISTED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(net_policy_release) struct net_policy p = policy(rows[i].policy);
        assert_int_equal(net_policy_lookup(&p, rows[i].name), rows[i].verdict);
    }
}

static void test_addresses(void **state)
{
    static const struct {
        const char *policy, *address;
        enum net_protocol protocol;
        unsigned port;
        enum net_verdict plain, resolved; /* as it is; as an answer for example.com */
    } rows[] = {
        {"none", "45.91.113.7", NET_TCP, 80, NET_REFUSED_MODE, NET_REFUSED_MODE},
        {"isolated", "45.91.113.7", NET_TCP, 80, NET_ALLOWED, NET_ALLOWED},
        {"isolated", "10.1.0.1", NET_TCP, 80, NET_REFUSED_FORBIDDEN, NET_REFUSED_REBINDING},
        {"full", "10.1.0.1", NET_TCP, 80, NET_ALLOWED, NET_ALLOWED},
        {"full", "10.2.0.1", NET_TCP, 80, NET_REFUSED_FORBIDDEN, NET_REFUSED_REBINDING},
        {"full", "127.0.0.1", NET_TCP, 80, NET_REFUSED_FORBIDDEN, NET_REFUSED_REBINDING},
        {"full", "169.254.169.254", NET_TCP, 80, NET_REFUSED_FORBIDDEN, NET_REFUSED_REBINDING},
        {"full", "2a0b:91::1", NET_TCP, 80, NET_REFUSED_IPV6, NET_REFUSED_IPV6},
        {"full -45.91.113.0/24", "45.91.113.7", NET_TCP, 80, NET_REFUSED_DENIED,
         NET_REFUSED_DENIED},
        {"full -45.91.113.0/24 +45.91.113.7", "45.91.113.7", NET_TCP, 80, NET_ALLOWED, NET_ALLOWED},
        {"full -45.91.113.0/24 +example.com", "45.91.113.7", NET_TCP, 80, NET_REFUSED_DENIED,
         NET_ALLOWED},
        {"full -evil.org", "45.91.113.7", NET_UDP, 443, NET_REFUSED_QUIC, NET_ALLOWED},
        {"allowlist +example.com", "45.91.113.7", NET_TCP, 443, NET_REFUSED_UNLISTED, NET_ALLOWED},
        {"allowlist +example.com", "10.2.0.1", NET_TCP, 443, NET_REFUSED_FORBIDDEN,
         NET_REFUSED_REBINDING},
        {"allowlist +10.0.0.0/8", "10.1.0.1", NET_TCP, 22, NET_ALLOWED, NET_ALLOWED},
        {"allowlist +10.0.0.0/8", "10.2.0.1", NET_TCP, 22, NET_REFUSED_FORBIDDEN,
         NET_REFUSED_REBINDING},
        {"allowlist +45.91.113.7:5432", "45.91.113.7", NET_TCP, 5432, NET_ALLOWED, NET_ALLOWED},
        {"allowlist +45.91.113.7:5432", "45.91.113.7", NET_TCP, 5433, NET_REFUSED_UNLISTED,
         NET_ALLOWED},
        {"allowlist +0.0.0.0/0 -45.91.113.0/24", "45.91.113.7", NET_TCP, 80, NET_REFUSED_DENIED,
         NET_REFUSED_DENIED},
        {"allowlist +0.0.0.0/0", "192.168.0.1", NET_TCP, 80, NET_REFUSED_FORBIDDEN,
         NET_REFUSED_REBINDING},
    };
    struct net_exceptions exceptions = {0};
    net_exceptions_add(&exceptions, slice_of("10.1.0.0/16"), NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(net_policy_release) struct net_policy p = policy(rows[i].policy);
        struct net_address a = address(rows[i].address);
        uint16_t port = (uint16_t)rows[i].port;
        enum net_verdict plain = net_policy_address(&p, &exceptions, &a, rows[i].protocol, port);
        enum net_verdict resolved =
            net_policy_resolved(&p, &exceptions, "example.com", &a, rows[i].protocol, port);
        if (plain != rows[i].plain || resolved != rows[i].resolved)
            fail_msg("%s: %s: %s, %s", rows[i].policy, rows[i].address, net_verdict_name(plain),
                     net_verdict_name(resolved));
    }
    _cleanup_(net_policy_release) struct net_policy six = policy("full");
    struct net_address a6 = address("2a0b:91::1");
    six.ipv6 = true;
    assert_int_equal(net_policy_address(&six, NULL, &a6, NET_TCP, 80), NET_ALLOWED);
}

static void test_nameless(void **state)
{
    static const struct {
        const char *policy;
        bool decide, proxied;
        enum net_verdict verdict; /* of TLS to 45.91.113.7 that names no host */
    } rows[] = {
        {"none", false, false, NET_REFUSED_MODE},
        {"isolated", false, false, NET_ALLOWED},
        {"full -45.91.113.0/24", false, false, NET_REFUSED_DENIED},
        {"isolated -evil.org", true, true, NET_REFUSED_NO_NAME},
        {"full -*.evil.org", true, true, NET_REFUSED_NO_NAME},
        {"full -*", true, true, NET_REFUSED_NO_NAME},
        {"isolated -evil.org +45.91.113.7", true, true, NET_ALLOWED},
        {"isolated -evil.org +45.91.113.7:80", true, true, NET_REFUSED_NO_NAME},
        {"isolated +example.com", false, false, NET_ALLOWED},
        {"allowlist +example.com", true, true, NET_REFUSED_UNLISTED},
        {"allowlist +45.91.113.7", true, true, NET_ALLOWED},
    };
    struct net_address a = address("45.91.113.7");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(net_policy_release) struct net_policy p = policy(rows[i].policy);
        enum net_verdict verdict = net_policy_nameless(&p, NULL, &a, NET_TCP, 443);
        if (net_policy_names_decide(&p) != rows[i].decide ||
            net_policy_proxied(&p) != rows[i].proxied || verdict != rows[i].verdict)
            fail_msg("%s: %s", rows[i].policy, net_verdict_name(verdict));
    }
    /* Headers have it proxied; they are no reason to refuse anything. */
    _cleanup_(net_policy_release) struct net_policy headers = policy("isolated");
    assert_int_equal(
        net_policy_add_header(&headers, slice_of("api.example.com"), "X-Key", "s", NULL, NULL), 0);
    assert_true(net_policy_proxied(&headers));
    assert_false(net_policy_names_decide(&headers));
    assert_int_equal(net_policy_nameless(&headers, NULL, &a, NET_TCP, 443), NET_ALLOWED);
}

static void test_admissions(void **state)
{
    static const struct {
        const char *policy, *ports;
    } rows[] = {
        {"allowlist +example.com", ""},
        {"full +example.com:22", ""},
        {"allowlist +example.com:22", "6:22-22 17:22-22 "},
        {"allowlist +example.com:22/tcp", "6:22-22 "},
        {"allowlist +example.com:80", "17:80-80 "},
        {"allowlist +example.com:443", ""},
        {"allowlist +example.com:79-81/tcp", "6:79-79 6:81-81 "},
        {"allowlist +example.com:*/tcp", "6:1-79 6:81-442 6:444-65535 "},
        {"allowlist +example.com:20-30/tcp -example.com:25", "6:20-24 6:26-30 "},
        {"allowlist +example.com:20-30/tcp +*:30-40/tcp", "6:20-40 "},
        {"allowlist +example.com:22 -example.com", ""},
        {"allowlist +other.com:22", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(net_policy_release) struct net_policy p = policy(rows[i].policy);
        _cleanup_buf_ struct buf text = BUF_INIT(512);
        struct net_admission admissions[8];
        size_t count = net_policy_admissions(&p, "example.com", admissions, 8);
        for (size_t j = 0; j < count; j++)
            buf_addf(&text, "%d:%u-%u ", admissions[j].protocol, admissions[j].low,
                     admissions[j].high);
        assert_string_equal(text.data, rows[i].ports);
    }
    _cleanup_(net_policy_release) struct net_policy p = policy("allowlist +example.com:*");
    struct net_admission admissions[2];
    assert_int_equal(net_policy_admissions(&p, "example.com", admissions, 2), 2);
}

static void test_names_that_can_be_denied(void **state)
{
    static const struct {
        const char *policy;
        bool fine;
    } rows[] = {
        {"isolated -evil.org", true},        {"isolated -evil.org:*", true},
        {"full -*.evil.org:443", true},      {"full -evil.org:80/tcp", true},
        {"full -45.91.0.0/16:22", true},     {"full -0.0.0.0/0:25", true},
        {"isolated -evil.org:22", false},    {"full -*:25", false},
        {"full -evil.org:80-443", false},    {"full -evil.org:80/udp", false},
        {"full -evil.org:*/tcp", false},     {"full -a.org -evil.org:8443", false},
        {"allowlist +* -evil.org:22", true}, {"isolated -evil.org +evil.org:22", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_(net_policy_release) struct net_policy p = policy(rows[i].policy);
        struct error err = {0};
        if ((net_policy_check(&p, NULL, &err) == 0) != rows[i].fine)
            fail_msg("%s: %s", rows[i].policy, err.message);
        assert_true(rows[i].fine || err.code == ERROR_INVALID_ARGUMENT);
    }
}

static void test_headers(void **state)
{
    _cleanup_(net_policy_release) struct net_policy p = policy("allowlist +*.example.com");
    static const struct {
        const char *host, *header, *secret, *format;
    } bad[] = {
        {"45.91.113.7", "x-key", "s", NULL},    {"*", "x-key", "s", NULL},
        {"a.com:443", "x-key", "s", NULL},      {"a.com", "Host", "s", NULL},
        {"a.com", "content-length", "s", NULL}, {"a.com", "x key", "s", NULL},
        {"a.com", "x-key\r\n", "s", NULL},      {"a.com", "", "s", NULL},
        {"a.com", "x-key", "S P", NULL},        {"a.com", "x-key", "s", "no place"},
        {"a.com", "x-key", "s", "{} twice {}"}, {"a.com", "x-key", "s", "{}\r\nX: y"},
        {"a.com", "x-key", "-", NULL},          {"a.com", "x-key", "-", ""},
        {"a.com", "x-key", "-", "a\r\nX: y"},   {"a.com", "x-key", "-", " a"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (net_policy_add_header(&p, slice_of(bad[i].host), bad[i].header, bad[i].secret,
                                  bad[i].format, NULL) == 0)
            fail_msg("row %zu was taken", i);
    assert_int_equal(p.header_count, 0);
    assert_int_equal(net_policy_add_header(&p, slice_of("api.example.com"), "Authorization",
                                           "api-key", "Bearer {}", NULL),
                     0);
    assert_int_equal(
        net_policy_add_header(&p, slice_of("*.example.com"), "x-all", "other", NULL, NULL), 0);
    const struct net_header *first = net_policy_header(&p, "api.example.com", NULL);
    assert_string_equal(first->header, "authorization");
    const struct net_header *second = net_policy_header(&p, "api.example.com", first);
    assert_string_equal(second->header, "x-all");
    assert_string_equal(second->format, "{}");
    assert_null(net_policy_header(&p, "api.example.com", second));
    assert_null(net_policy_header(&p, "example.com", NULL));
}

static void test_round_trip(void **state)
{
    _cleanup_(net_policy_release) struct net_policy from =
        policy("allowlist +*.example.com:443 +10.0.0.0/8 -a.example.com +[2001:db8::]/32:22/tcp");
    _cleanup_(net_policy_release) struct net_policy to = {0}, copy = {0}, none = {0};
    _cleanup_buf_ struct buf bytes = BUF_INIT(NET_POLICY_BYTES_MAX);
    from.ipv6 = true;
    from.rate_in = 1000;
    net_policy_add_header(&from, slice_of("api.example.com"), "x-key", "s", "a {} b", NULL);
    net_policy_add_header(&from, slice_of("api.example.com"), "x-plain", NET_NO_SECRET, "as it is",
                          NULL);
    assert_false(net_policy_upgrades(&from, "api.example.com"));
    from.headers[0].upgrade = true;
    net_policy_pack(&from, &bytes);
    assert_int_equal(net_policy_unpack((struct slice){bytes.data, bytes.len}, &to, NULL), 0);
    assert_true(net_policy_same(&from, &to));
    assert_true(net_policy_upgrades(&to, "api.example.com"));
    assert_false(net_policy_upgrades(&to, "other.example.com"));
    assert_int_equal(to.allow_count, 3);
    assert_string_equal(to.headers[0].format, "a {} b");
    assert_string_equal(to.headers[1].format, "as it is");
    assert_int_equal(net_policy_copy(&from, &copy, NULL), 0);
    assert_true(net_policy_same(&from, &copy));
    copy.mode = NET_FULL;
    assert_false(net_policy_same(&from, &copy));
    assert_int_equal(net_policy_unpack((struct slice){"", 0}, &none, NULL), 0);
    assert_int_equal(none.mode, NET_NONE);
    static const char *const broken[] = {"mode=most", "allow=*x", "what=1",
                                         "plain",     "in=x",     "header=a b"};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++)
        assert_int_equal(
            net_policy_unpack((struct slice){broken[i], strlen(broken[i]) + 1}, &none, NULL), -1);
    assert_int_equal(net_policy_unpack((struct slice){"mode=full", 9}, &none, NULL), -1);
}

static void test_checks(void **state)
{
    _cleanup_(net_policy_release) struct net_policy nothing = policy("none +example.com"),
                                                    cut = policy("allowlist +10.0.0.0/8"),
                                                    many = policy("full");
    struct error err = {0};
    assert_int_equal(net_policy_check(&nothing, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    assert_int_equal(net_policy_check(&cut, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_NETWORK_REFUSED);
    for (int i = 0; i < NET_RULES_MAX; i++) {
        char text[32];
        snprintf(text, sizeof(text), "h%d.example", i);
        assert_int_equal(net_policy_add(&many, NET_DENY, slice_of(text), &err), 0);
    }
    assert_int_equal(net_policy_add(&many, NET_DENY, slice_of("h0.EXAMPLE"), &err), 0);
    assert_int_equal(net_policy_add(&many, NET_DENY, slice_of("more.example"), &err), -1);
    assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
    _cleanup_(net_policy_release) struct net_policy plain = policy("full -10.0.0.0/8"),
                                                    named = policy("full -evil.org"),
                                                    list = policy("allowlist");
    assert_false(net_policy_proxied(&plain));
    assert_true(net_policy_proxied(&named) && net_policy_proxied(&list));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_addresses),  cmocka_unit_test(test_nameless),
        cmocka_unit_test(test_admissions), cmocka_unit_test(test_names_that_can_be_denied),
        cmocka_unit_test(test_headers),    cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
