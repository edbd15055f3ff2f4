/* SPDX-License-Identifier: Apache-2.0 */

#include "fixture.h"

#include "auth/throttle.h"

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

static void test_bearer(void **state)
{
    static const char *const right[] = {"Bearer k.e-y",    "bearer k.e-y",  "BEARER k.e-y",
                                        "Bearer    k.e-y", "Bearer k.e-y ", "Bearer k.e-y\t "};
    for (size_t i = 0; i < ARRAY_LEN(right); i++)
        assert_true(slice_eq(auth_bearer(right[i]), slice_of("k.e-y")));
    static const char *const wrong[] = {
        "",         "Bearer",    "Bearer ",         "Bearer     ", "Basic YTpi",
        "Bearerer", "Bearer\tx", "cella_something", "Bearer, x",   "x Bearer",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_null(auth_bearer(wrong[i]).data);
    assert_null(auth_bearer(NULL).data);
}

static void test_right_key(void **state)
{
    struct fixture *f = *state;
    struct principal who = {0};
    struct error err = {0};
    assert_int_equal(auth_check(f->auth, f->admin, PEER, SCOPE_WRITE, &who, &err), 0);
    assert_string_equal(who.name, "admin");
    assert_string_equal(who.key_id, "admin");
    assert_string_equal(who.workspace, "default");
    assert_int_equal(who.scopes, SCOPE_ALL);
    assert_false(who.by_token);
    assert_int_equal(auth_check(f->auth, f->reader, PEER, SCOPE_READ, &who, &err), 0);
    assert_string_equal(who.workspace, "blue");
}

static void test_wrong_keys(void **state)
{
    struct fixture *f = *state;
    struct principal who = {.name = "untouched"};
    struct error err = {0};
    char longer[AUTH_KEY_SIZE + 1], hash[65], changed[AUTH_KEY_SIZE];
    snprintf(longer, sizeof(longer), "%sx", f->admin);
    auth_hash_key(f->admin, hash);
    snprintf(changed, sizeof(changed), "%s", f->admin);
    changed[strlen(changed) - 1] ^= 1;
    const char *const rows[] = {"x", "cella_", longer, changed, f->admin + 1, hash};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(auth_check(f->auth, rows[i], "unix", SCOPE_READ, &who, &err), -1);
        assert_int_equal(err.code, ERROR_UNAUTHORIZED);
        assert_non_null(strstr(err.message, "Authorization: Bearer"));
        assert_non_null(strstr(err.message, "api-key"));
        assert_null(strstr(err.message, hash)); /* what was sent is not repeated */
    }
    static const char *const none[] = {NULL, ""};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        assert_int_equal(auth_check(f->auth, none[i], PEER, SCOPE_READ, &who, &err), -1);
        assert_int_equal(err.code, ERROR_UNAUTHORIZED);
        assert_non_null(strstr(err.message, "no API key"));
    }
    assert_string_equal(who.name, "untouched");
}

static void test_scopes(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    struct error err = {0};
    assert_int_equal(auth_check(f->auth, f->reader, PEER, SCOPE_READ, &who, &err), 0);
    assert_int_equal(who.scopes, SCOPE_READ);
    assert_int_equal(auth_check(f->auth, f->reader, PEER, SCOPE_WRITE, &who, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    assert_string_equal(err.message, "the key \"reader\" does not have the scope write");
    assert_int_equal(auth_check(f->auth, f->reader, PEER, SCOPE_READ | SCOPE_ADMIN, &who, &err),
                     -1);
    assert_non_null(strstr(err.message, "admin"));
    /* A route without a scope is closed to everybody, whatever else it says. */
    assert_int_equal(auth_check(f->auth, f->admin, PEER, 0, &who, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    assert_int_equal(auth_check(f->auth, f->admin, PEER, ROUTE_TOKEN_IN_QUERY, &who, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
}

static void test_scope_texts(void **state)
{
    char text[SCOPES_TEXT_SIZE];
    assert_int_equal(scope_parse(slice_of("read")), SCOPE_READ);
    assert_int_equal(scope_parse(slice_of("write")), SCOPE_READ | SCOPE_WRITE);
    assert_int_equal(scope_parse(slice_of("admin")), SCOPE_READ | SCOPE_WRITE | SCOPE_ADMIN);
    assert_int_equal(scope_parse(slice_of("server")), SCOPE_ALL);
    assert_int_equal(scope_parse(slice_of("public")), 0);
    assert_int_equal(scope_parse(slice_of("")), 0);
    scopes_text(SCOPE_ALL | ROUTE_FORWARDS, text);
    assert_string_equal(text, "read write admin server");
    scopes_text(0, text);
    assert_string_equal(text, "");
}

static void test_expiry(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    struct error err = {0};
    struct store_key row = {.id = "old", .name = "old", .workspace = "default", .scopes = 2};
    row.expires_ms = time_now_ms() - 1;
    auth_hash_key("cella_old", row.hash);
    assert_int_equal(store_put_key(f->store, &row, NULL), 0);
    auth_free(f->auth);
    assert_int_equal(auth_new(f->store, false, &f->auth, NULL), 0);
    assert_int_equal(auth_check(f->auth, "cella_old", PEER, SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "has expired"));
}

static void test_public(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    assert_int_equal(auth_check(f->auth, NULL, PEER, SCOPE_PUBLIC, &who, NULL), 0);
    assert_string_equal(who.name, "anonymous");
    assert_int_equal(who.scopes & SCOPE_ALL, 0);
    assert_int_equal(auth_check(f->auth, "nonsense", PEER, SCOPE_PUBLIC, &who, NULL), 0);
}

static void test_open(void **state)
{
    struct fixture *f = *state;
    struct auth *open;
    struct principal who;
    assert_int_equal(auth_new(f->store, true, &open, NULL), 0);
    assert_int_equal(auth_check(open, NULL, PEER, SCOPE_ADMIN, &who, NULL), 0);
    assert_string_equal(who.name, "anonymous");
    assert_string_equal(who.workspace, "default");
    assert_int_equal(who.scopes & SCOPE_ALL, SCOPE_ALL);
    assert_int_equal(auth_check(open, "wrong", PEER, SCOPE_ADMIN, &who, NULL), 0);
    auth_free(open);
    auth_free(NULL);
}

/* A client is a key and its id: neither alone, and not another's. */
static void test_client(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    struct error err = {0};
    assert_int_equal(auth_check_client(f->auth, "reader", f->reader, PEER, &who, &err), 0);
    assert_string_equal(who.name, "reader");
    assert_int_equal(auth_check_client(f->auth, "admin", f->reader, PEER, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    assert_int_equal(auth_check_client(f->auth, "", f->reader, PEER, &who, &err), -1);
    assert_int_equal(auth_check_client(f->auth, "reader", "reader", PEER, &who, &err), -1);
    assert_int_equal(auth_check_client(f->auth, "reader", "", PEER, &who, &err), -1);
}

static void try_wrong_keys(struct fixture *f, const char *peer, int count)
{
    struct principal who;
    for (int i = 0; i < count; i++)
        assert_int_equal(auth_check(f->auth, "wrong", peer, SCOPE_READ, &who, NULL), -1);
}

static void test_too_many_attempts(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    struct error err = {0};
    assert_int_equal(auth_check(f->auth, f->admin, PEER, SCOPE_READ, &who, &err), 0);
    try_wrong_keys(f, PEER, THROTTLE_BURST);
    assert_int_equal(auth_check(f->auth, "wrong", PEER, SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_TOO_MANY_ATTEMPTS);
    assert_in_range(auth_retry_after(f->auth, PEER), 1, 60);
    /* A right key that was not seen there before is told the same. */
    assert_int_equal(auth_check(f->auth, f->reader, PEER, SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_TOO_MANY_ATTEMPTS);
    assert_int_equal(auth_check_client(f->auth, "reader", f->reader, PEER, &who, &err), -1);
    assert_int_equal(err.code, ERROR_TOO_MANY_ATTEMPTS);
    /* One that was goes on, and elsewhere everybody does. */
    assert_int_equal(auth_check(f->auth, f->admin, PEER, SCOPE_READ, &who, &err), 0);
    assert_int_equal(auth_check(f->auth, f->reader, "192.0.2.2:1", SCOPE_READ, &who, &err), 0);
    /* No key at all is no attempt. */
    for (int i = 0; i < 3 * THROTTLE_BURST; i++)
        assert_int_equal(auth_check(f->auth, NULL, "192.0.2.3:1", SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    /* Programs of this machine that may open the socket are not counted. */
    try_wrong_keys(f, "unix", 3 * THROTTLE_BURST);
    assert_int_equal(auth_check(f->auth, f->reader, "unix", SCOPE_READ, &who, &err), 0);
}

static void test_use_is_noted(void **state)
{
    struct fixture *f = *state;
    struct store_key row;
    assert_int_equal(auth_key_get(f->auth, "blue", "reader", &row, NULL), 0);
    assert_int_equal(row.last_used_ms, 0);
    fixture_caller(f, f->reader);
    auth_free(f->auth);
    assert_int_equal(auth_new(f->store, false, &f->auth, NULL), 0);
    assert_int_equal(auth_key_get(f->auth, "blue", "reader", &row, NULL), 0);
    assert_true(row.last_used_ms > time_now_ms() - 60 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        auth_test(test_hash),         auth_test(test_make_key),   auth_test(test_bearer),
        auth_test(test_right_key),    auth_test(test_wrong_keys), auth_test(test_scopes),
        auth_test(test_scope_texts),  auth_test(test_expiry),     auth_test(test_public),
        auth_test(test_open),         auth_test(test_client),     auth_test(test_too_many_attempts),
        auth_test(test_use_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
