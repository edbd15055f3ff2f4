/* SPDX-License-Identifier: Apache-2.0 */

/* Names of ports, ranges of the host's, and cookies on their way. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/cookie.h"
#include "api/port_doors.h"
#include "api/port_host.h"
#include "base/cleanup.h"

#define ID "k3vq7xabcdef"
/* One more than a label may have. */
#define A_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_names(void **state)
{
    static const struct {
        const char *host, *domain;
        unsigned port; /* 0: it is none */
    } rows[] = {
        {"3000-" ID ".localhost", "localhost", 3000},
        {"3000-" ID ".localhost:7070", "localhost", 3000},
        {"3000-" ID ".localhost.", "localhost", 3000},
        {"3000-" ID ".localhost.:7070", "localhost", 3000},
        {"1-K3VQ7XABCDEF.Boxes.Example", "boxes.example", 1},
        {"65535-" ID ".a.b", "a.b", 65535},
        {"65536-" ID ".localhost", "localhost", 0},
        {"0-" ID ".localhost", "localhost", 0},
        {"03000-" ID ".localhost", "localhost", 0},
        {"99999999999999999999-" ID ".localhost", "localhost", 0},
        {"+1-" ID ".localhost", "localhost", 0},
        {" 1-" ID ".localhost", "localhost", 0},
        {"3000-" ID, "localhost", 0},
        {"3000-" ID ".", "localhost", 0},
        {"3000-" ID ".localhost..", "localhost", 0},
        {"3000-" ID ".localhost:x", "localhost", 0},
        {"3000-" ID ".localhost:1:2", "localhost", 0},
        {"3000-" ID ".localhostx", "localhost", 0},
        {"3000-" ID ".xlocalhost", "localhost", 0},
        {"3000-" ID ".localhost.example", "localhost", 0},
        {"x.3000-" ID ".localhost", "localhost", 0},
        {"3000-" ID "x.localhost", "localhost", 0},
        {"3000-k3vq7xabcde.localhost", "localhost", 0},
        {"3000-k3vq7xabcd_f.localhost", "localhost", 0},
        {"3000--" ID ".localhost", "localhost", 0},
        {"3000" ID ".localhost", "localhost", 0},
        {"localhost", "localhost", 0},
        {"", "localhost", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct port_host host = {0};
        bool found = port_host_parse(rows[i].host, rows[i].domain, &host);
        assert_int_equal(found, rows[i].port != 0);
        assert_int_equal(host.port, rows[i].port);
        if (found)
            assert_string_equal(host.sandbox_id, ID);
    }
}

static void test_domains(void **state)
{
    static const char *const good[] = {"localhost", "a", "boxes.example", "a-b.c-1.d"};
    static const char *const bad[] = {"",     ".",   "a.",  ".a",  "a..b", "A.b",      "a_b", "-a",
                                      "a-.b", "a b", "a:1", "a/b", "*.a",  "\xc3\xa9", A_64};
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(port_domain_check(good[i], &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(port_domain_check(bad[i], &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
}

static void test_ranges(void **state)
{
    static const struct {
        const char *text, *address; /* NULL: refused */
        unsigned from, to;
    } rows[] = {
        {"127.0.0.1:30000-32767", "127.0.0.1", 30000, 32767},
        {"[::1]:8000-8000", "[::1]", 8000, 8000},
        {"0.0.0.0:1024-65535", "0.0.0.0", 1024, 65535},
        {"off", "", 0, 0},
        {"", NULL, 0, 0},
        {"30000-32767", NULL, 0, 0},
        {"127.0.0.1:1023-2000", NULL, 0, 0},
        {"127.0.0.1:3000", NULL, 0, 0},
        {"127.0.0.1:3000-", NULL, 0, 0},
        {"127.0.0.1:3000-2999", NULL, 0, 0},
        {"127.0.0.1:3000-65536", NULL, 0, 0},
        {"127.0.0.1:3000-4000x", NULL, 0, 0},
        {"example.com:3000-4000", NULL, 0, 0},
        {"unix:3000-4000", NULL, 0, 0},
        {":3000-4000", NULL, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct door_range range;
        struct error err;
        int rc = door_range_parse(rows[i].text, &range, &err);
        assert_int_equal(rc, rows[i].address == NULL ? -1 : 0);
        if (rc < 0)
            continue;
        assert_string_equal(range.address, rows[i].address);
        assert_int_equal(range.from, rows[i].from);
        assert_int_equal(range.to, rows[i].to);
    }
}

static void assert_text(const char *got, const char *want)
{
    if (want == NULL)
        assert_null(got);
    else
        assert_string_equal(got, want);
}

static void test_cookies(void **state)
{
    static const struct {
        const char *field, *program;
    } out[] = {
        {"a=1", "a=1"},
        {"a=1; b=2", "a=1; b=2"},
        {"a=1;b=2;;  c ", "a=1; b=2; c"},
        {"cella_port_1_x=t", NULL},
        {"a=1; cella_port_1_x=t; b=2", "a=1; b=2"},
        {"CELLA_PORT_1=t;bl_preview_token=t", NULL},
        {"cella_port_1_x =t; a=\"x;y\"", "a=\"x; y\""},
        {"bl_preview_tokens=1", "bl_preview_tokens=1"},
        {" ; ;", NULL},
        {"", NULL},
    };
    static const struct {
        const char *field, *browser;
    } in[] = {
        {"a=1; Path=/; Domain=x.example; Secure", "a=1; Path=/; Secure"},
        {"a=1;domain=x;DOMAIN = y;Domain", "a=1"},
        {"domain=1; HttpOnly", "domain=1; HttpOnly"},
        {"a=domain; Max-Age=1", "a=domain; Max-Age=1"},
        {"cella_port_1_x=t; Path=/", NULL},
        {"bl_preview_token=t", NULL},
        {"", NULL},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(out); i++)
        assert_text(cookie_for_program(arena, out[i].field), out[i].program);
    for (size_t i = 0; i < ARRAY_LEN(in); i++)
        assert_text(cookie_from_program(arena, in[i].field), in[i].browser);
    assert_text(cookie_get(arena, "a=1; bb=2 ; b=3;b=4", "b"), "3");
    assert_text(cookie_get(arena, "a=1", "b"), NULL);
    assert_text(cookie_get(arena, "b", "b"), NULL);
    assert_text(cookie_get(arena, NULL, "b"), NULL);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_domains),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_cookies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
