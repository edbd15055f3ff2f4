/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

struct fixture {
    struct store *store;
    struct auth *auth;
    char admin[AUTH_KEY_SIZE];
    char reader[AUTH_KEY_SIZE];
};

static void add_key(struct store *store, const char *key, const char *name, unsigned scopes)
{
    struct store_key row = {.scopes = scopes, .created_ms = 1};
    auth_hash_key(key, row.hash);
    snprintf(row.name, sizeof(row.name), "%s", name);
    snprintf(row.workspace, sizeof(row.workspace), "default");
    assert_int_equal(store_put_key(store, &row, NULL), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct error err;
    assert_int_equal(store_open(NULL, ":memory:", false, &f->store, &err), 0);
    auth_make_key(f->admin);
    auth_make_key(f->reader);
    add_key(f->store, f->admin, "admin", SCOPE_ALL);
    add_key(f->store, f->reader, "reader", SCOPE_READ);
    assert_int_equal(auth_new(f->store, false, &f->auth, &err), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    auth_free(f->auth);
    store_close(f->store);
    free(f);
    return 0;
}

static int check(const struct auth *auth, const char *before, const char *key, const char *behind,
                 unsigned scope, struct principal *who, struct error *err)
{
    char field[256];
    snprintf(field, sizeof(field), "%s%s%s", before, key, behind);
    return auth_check(auth, field, scope, who, err);
}

static void test_hash(void **state)
{
    char hash[65];
    auth_hash_key("abc", hash);
    assert_string_equal(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    auth_hash_key("", hash);
    assert_string_equal(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void test_make_key(void **state)
{
    char one[AUTH_KEY_SIZE], two[AUTH_KEY_SIZE];
    for (int i = 0; i < 100; i++) {
        auth_make_key(one);
        auth_make_key(two);
        assert_int_equal(strlen(one), 6 + 43);
        assert_memory_equal(one, "cella_", 6);
        assert_int_equal(strspn(one, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789-_"),
                         6 + 43);
        assert_string_not_equal(one, two);
    }
}

static void test_right_key(void **state)
{
    struct fixture *f = *state;
    static const char *const schemes[] = {"Bearer ", "bearer ", "BEARER ", "Bearer   "};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        struct principal who = {0};
        struct error err = {0};
        assert_int_equal(check(f->auth, schemes[i], f->admin, "", SCOPE_WRITE, &who, &err), 0);
        assert_string_equal(who.name, "admin");
        assert_string_equal(who.workspace, "default");
        assert_int_equal(who.scopes, SCOPE_ALL);
    }
    struct principal who;
    assert_int_equal(check(f->auth, "Bearer ", f->admin, " ", SCOPE_READ, &who, NULL), 0);
}

static void test_wrong_keys(void **state)
{
    struct fixture *f = *state;
    struct principal who = {.name = "untouched"};
    struct error err = {0};
    static const char *const rows[] = {
        "",         "Bearer",    "Bearer ",         "Bearer     ", "Bearer x", "Basic YTpi",
        "Bearerer", "Bearer\tx", "cella_something", "Bearer, x",   "x Bearer", "Bearer cella_",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(auth_check(f->auth, rows[i], SCOPE_READ, &who, &err), -1);
        assert_int_equal(err.code, ERROR_UNAUTHORIZED);
        assert_non_null(strstr(err.message, "Authorization: Bearer"));
        assert_non_null(strstr(err.message, "api-key"));
    }
    assert_int_equal(auth_check(f->auth, NULL, SCOPE_READ, &who, &err), -1);
    assert_non_null(strstr(err.message, "no API key"));
    assert_int_equal(check(f->auth, "", f->admin, "", SCOPE_READ, &who, &err), -1);
    assert_int_equal(check(f->auth, "Bearer", f->admin, "", SCOPE_READ, &who, &err), -1);
    assert_int_equal(check(f->auth, "Bearer ", f->admin, "x", SCOPE_READ, &who, &err), -1);
    assert_int_equal(check(f->auth, "Bearer x", f->admin, "", SCOPE_READ, &who, &err), -1);
    assert_int_equal(check(f->auth, "Bearer ", f->admin, " x", SCOPE_READ, &who, &err), -1);
    /* The hash is not the key. */
    char hash[65];
    auth_hash_key(f->admin, hash);
    assert_int_equal(check(f->auth, "Bearer ", hash, "", SCOPE_READ, &who, &err), -1);
    assert_null(strstr(err.message, hash)); /* what was sent is not repeated */
    assert_string_equal(who.name, "untouched");
}

static void test_scopes(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    struct error err = {0};
    assert_int_equal(check(f->auth, "Bearer ", f->reader, "", SCOPE_READ, &who, &err), 0);
    assert_int_equal(who.scopes, SCOPE_READ);
    assert_int_equal(check(f->auth, "Bearer ", f->reader, "", SCOPE_WRITE, &who, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    assert_string_equal(err.message, "the key \"reader\" does not have the scope write");
    assert_int_equal(check(f->auth, "Bearer ", f->reader, "", SCOPE_READ | SCOPE_ADMIN, &who, &err),
                     -1);
    assert_non_null(strstr(err.message, "admin"));
    /* A route without a scope is closed to everybody. */
    assert_int_equal(check(f->auth, "Bearer ", f->admin, "", 0, &who, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
}

static void test_public(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    assert_int_equal(auth_check(f->auth, NULL, SCOPE_PUBLIC, &who, NULL), 0);
    assert_string_equal(who.name, "anonymous");
    assert_int_equal(who.scopes & SCOPE_ALL, 0);
    assert_int_equal(auth_check(f->auth, "nonsense", SCOPE_PUBLIC, &who, NULL), 0);
}

static void test_open(void **state)
{
    struct fixture *f = *state;
    struct auth *open;
    struct principal who;
    assert_int_equal(auth_new(f->store, true, &open, NULL), 0);
    assert_int_equal(auth_check(open, NULL, SCOPE_ADMIN, &who, NULL), 0);
    assert_string_equal(who.name, "anonymous");
    assert_string_equal(who.workspace, "default");
    assert_int_equal(who.scopes & SCOPE_ALL, SCOPE_ALL);
    assert_int_equal(auth_check(open, "Bearer wrong", SCOPE_ADMIN, &who, NULL), 0);
    auth_free(open);
    auth_free(NULL);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_hash),   TEST(test_make_key), TEST(test_right_key), TEST(test_wrong_keys),
        TEST(test_scopes), TEST(test_public),   TEST(test_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
