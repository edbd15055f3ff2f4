/* SPDX-License-Identifier: Apache-2.0 */

/* What E2B's settings come to. */

#include "helpers.h"

#include <string.h>

#include "api/e2b_network.h"
#include "base/cleanup.h"

static const struct {
    const char *network; /* NULL: none */
    bool internet;
    enum net_mode mode;
    const char *allow, *deny; /* their first; NULL: empty */
} rows[] = {
    {NULL, true, NET_ISOLATED, NULL, NULL},
    {NULL, false, NET_ALLOWLIST, NULL, NULL},
    {"{}", true, NET_ISOLATED, NULL, NULL},
    {"{\"allowOut\":null,\"allowPublicTraffic\":false}", true, NET_ISOLATED, NULL, NULL},
    {"{\"denyOut\":[\"8.8.8.8\"]}", true, NET_ISOLATED, NULL, "8.8.8.8"},
    {"{\"denyOut\":[\"8.8.8.0/24\"],\"allowOut\":[\"8.8.8.8\"]}", true, NET_ISOLATED, "8.8.8.8",
     "8.8.8.0/24"},
    {"{\"denyOut\":[\"0.0.0.0/0\"],\"allowOut\":[\"*.example.com\"]}", true, NET_ALLOWLIST,
     "*.example.com", NULL},
    {"{\"denyOut\":[\"1.1.1.1\",\"::/0\"],\"allowOut\":[\"1.1.1.1\"]}", true, NET_ALLOWLIST,
     "1.1.1.1", NULL},
    {"{\"allowOut\":[\"a.example\"]}", false, NET_ALLOWLIST, "a.example", NULL},
};

static const char *const refused[] = {
    "[]",
    "{\"allowOut\":\"a\"}",
    "{\"denyOut\":[1]}",
    "{\"allowOut\":{}}",
    "{\"egressProxy\":{\"address\":\"proxy:1080\"}}",
    "{\"httpsPorts\":[443]}",
    "{\"rules\":[]}",
    "{\"rules\":{\"a.example\":{}}}",
    "{\"rules\":{\"a.example\":[1]}}",
    "{\"rules\":{\"a.example\":[{\"transform\":{\"headers\":{\"X\":1}}}]}}",
    "{\"rules\":{\"a.example\":[{\"transform\":{\"headers\":{\"X\":\"${e2b.secrets.a\"}}}]}}",
    "{\"rules\":{\"a.example\":[{\"transform\":{\"headers\":"
    "{\"X\":\"${e2b.secrets.a}${e2b.secrets.b}\"}}}]}}",
    "{\"rules\":{\"a.example\":[{\"transform\":{\"headers\":"
    "{\"X\":\"${e2b.identity.tokens.a}\"}}}]}}",
};

static void what_it_comes_to(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct network_request request;
        assert_int_equal(
            e2b_network_request(*state,
                                rows[i].network == NULL ? NULL : value_of(*state, rows[i].network),
                                rows[i].internet, &request, NULL),
            0);
        assert_int_equal(request.mode, rows[i].mode);
        assert_true(request.replace);
        const struct slice lists[] = {request.allow, request.deny};
        const char *const first[] = {rows[i].allow, rows[i].deny};
        for (size_t k = 0; k < 2; k++) {
            if (first[k] == NULL)
                assert_int_equal(lists[k].len, 0);
            else
                assert_string_equal(strv_first(lists[k]), first[k]);
        }
    }
}

static void rules_are_headers(void **state)
{
    static const char *const wanted[] = {
        "a.example", "Authorization", "key_1", "Bearer {}!", "",
        "a.example", "X-Plain",       "-",     "as it is",   "",
    };
    struct network_request request;
    size_t n = 0;
    assert_int_equal(
        e2b_network_request(*state,
                            value_of(*state,
                                     "{\"rules\":{\"a.example\":[{},{\"transform\":{\"headers\":{"
                                     "\"Authorization\":\"Bearer ${e2b.secrets.key_1}!\","
                                     "\"X-Plain\":\"as it is\"}}}],\"b.example\":[]},"
                                     "\"egressProxy\":null,\"httpsPorts\":[]}"),
                            true, &request, NULL),
        0);
    assert_true(request.given & NETWORK_HEADERS);
    strv_each (word, request.headers) {
        assert_true(n < ARRAY_LEN(wanted));
        assert_string_equal(word, wanted[n++]);
    }
    assert_int_equal(n, ARRAY_LEN(wanted));
}

static void what_is_refused(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct network_request request;
        struct error err = {0};
        assert_int_equal(
            e2b_network_request(*state, value_of(*state, refused[i]), true, &request, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "network"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(what_it_comes_to),
        api_test(rules_are_headers),
        api_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
