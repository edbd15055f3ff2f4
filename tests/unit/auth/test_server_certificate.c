/* SPDX-License-Identifier: Apache-2.0 */

/* The server's own certificate: which names it is for, and when a new one is needed. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "auth/seal.h"
#include "auth/server_certificate.h"
#include "base/limits.h"

struct authority {
    struct buf certificate, key;
};

static struct authority make_authority(void)
{
    struct authority a = {BUF_INIT(TLS_PEM_MAX), BUF_INIT(TLS_PEM_MAX)};
    struct error err = {0};
    assert_int_equal(server_authority_make("Cella test", &a.certificate, &a.key, &err), 0);
    return a;
}

static void release(struct authority *a)
{
    buf_release(&a->certificate);
    buf_wipe(&a->key);
}

static void add(struct server_names *names, const char *name)
{
    server_names_add(names, name, strlen(name));
}

static void test_names(void **state)
{
    static const struct {
        const char *name;
        size_t count; /* afterwards */
    } rows[] = {
        {"localhost", 1}, {"localhost", 1},   {"", 1},
        {"::1", 2},       {"10.0.0.1", 3},    {"*.example.com", 4},
        {"a b", 4},       {"a,DNS:b", 4},     {"a\nb", 4},
        {"x/y", 4},       {"\xc3\xa9.de", 4}, {"Cella-1.example.com", 5},
    };
    struct server_names names = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add(&names, rows[i].name);
        assert_int_equal(names.count, rows[i].count);
    }
    char name[] = "n0";
    for (int i = 0; i < 2 * SERVER_NAMES_MAX; i++) {
        name[1] = (char)('A' + i);
        add(&names, name);
    }
    assert_int_equal(names.count, SERVER_NAMES_MAX);
    char longest[SERVER_NAME_SIZE + 1];
    memset(longest, 'a', sizeof(longest));
    names.count = 0;
    server_names_add(&names, longest, SERVER_NAME_SIZE);
    assert_int_equal(names.count, 0);
    server_names_add(&names, longest, SERVER_NAME_SIZE - 1);
    assert_int_equal(names.count, 1);
}

static void test_fits(void **state)
{
    struct authority mine = make_authority(), other = make_authority();
    struct server_names names = {0};
    struct error err = {0};
    struct buf pem = BUF_INIT(TLS_PEM_MAX);
    add(&names, "localhost");
    add(&names, "*.localhost");
    add(&names, "127.0.0.1");
    add(&names, "::1");
    assert_int_equal(
        server_certificate_make(mine.certificate.data, mine.key.data, &names, &pem, &err), 0);
    assert_true(server_certificate_fits(pem.data, mine.certificate.data, &names));
    assert_false(server_certificate_fits(pem.data, other.certificate.data, &names));
    struct server_names fewer = {0};
    add(&fewer, "localhost");
    assert_true(server_certificate_fits(pem.data, mine.certificate.data, &fewer));
    static const char *const more[] = {"example.com", "*.example.com", "127.0.0.2", "::2"};
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        struct server_names wanted = names;
        add(&wanted, more[i]);
        assert_false(server_certificate_fits(pem.data, mine.certificate.data, &wanted));
    }
    assert_false(server_certificate_fits("", mine.certificate.data, &names));
    assert_false(server_certificate_fits(mine.certificate.data, mine.certificate.data, &fewer));
    buf_wipe(&pem);
    release(&mine);
    release(&other);
}

static void test_mixed_up(void **state)
{
    struct authority mine = make_authority(), other = make_authority();
    const struct server_names names = {0};
    struct buf pem = BUF_INIT(TLS_PEM_MAX);
    const char *const keys[] = {other.key.data, "", "-----BEGIN PRIVATE KEY-----\nAAAA\n"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct error err = {0};
        assert_int_equal(
            server_certificate_make(mine.certificate.data, keys[i], &names, &pem, &err), -1);
        assert_int_equal(err.code, ERROR_CONFLICT);
        assert_int_equal(pem.len, 0);
    }
    buf_wipe(&pem);
    release(&mine);
    release(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_mixed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
