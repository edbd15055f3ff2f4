/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/keys.h"

#include "fixture.h"

static int make(struct fixture *f, const struct principal *by, struct key_request request,
                char secret[AUTH_KEY_SIZE], struct store_key *key, struct error *err)
{
    return auth_key_create(f->auth, by, &request, secret, key, err);
}

static void test_life(void **state)
{
    struct fixture *f = *state;
    struct principal who, admin = fixture_caller(f, f->admin);
    struct error err = {0};
    struct store_key key;
    char secret[AUTH_KEY_SIZE];
    const struct key_request request = {"ci", "blue", SCOPE_READ | SCOPE_WRITE, 60};
    assert_int_equal(make(f, &admin, request, secret, &key, &err), 0);
    assert_int_equal(strlen(key.id), KEY_ID_LEN);
    assert_memory_equal(key.hint, secret, 10);
    assert_int_equal(strlen(key.hint), 10);
    assert_string_equal(key.created_by, "admin");
    assert_in_range(key.expires_ms - key.created_ms, 60 * 1000, 60 * 1000);

    auth_free(f->auth); /* it is not only in memory */
    assert_int_equal(auth_new(f->store, false, &f->auth, NULL), 0);
    assert_int_equal(auth_check(f->auth, secret, PEER, SCOPE_WRITE, &who, &err), 0);
    assert_string_equal(who.name, "ci");
    assert_string_equal(who.workspace, "blue");

    assert_int_equal(auth_key_revoke(f->auth, &admin, "default", key.id, &err), -1);
    assert_int_equal(err.code, ERROR_KEY_NOT_FOUND); /* it is blue's */
    assert_int_equal(auth_key_revoke(f->auth, &admin, "blue", key.id, &err), 0);
    assert_int_equal(auth_check(f->auth, secret, PEER, SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    assert_int_equal(auth_key_revoke(f->auth, &admin, "blue", key.id, &err), -1);
    assert_int_equal(err.code, ERROR_KEY_NOT_FOUND);
    auth_free(f->auth);
    assert_int_equal(auth_new(f->store, false, &f->auth, NULL), 0);
    assert_int_equal(auth_check(f->auth, secret, PEER, SCOPE_READ, &who, &err), -1);
}

static void test_nobody_grants_more_than_he_has(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_key key;
    char secret[AUTH_KEY_SIZE];
    struct principal by = {.name = "boss", .workspace = "blue"};
    by.scopes = SCOPE_READ | SCOPE_WRITE | SCOPE_ADMIN;
    assert_int_equal(
        make(f, &by, (struct key_request){"a", "blue", SCOPE_ALL, 0}, secret, &key, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    assert_non_null(strstr(err.message, "server"));
    assert_int_equal(
        make(f, &by, (struct key_request){"a", "default", SCOPE_READ, 0}, secret, &key, &err), -1);
    assert_int_equal(err.code, ERROR_WORKSPACE_NOT_FOUND);
    assert_int_equal(
        make(f, &by, (struct key_request){"a", "blue", by.scopes, 0}, secret, &key, &err), 0);
    /* Nor revokes it. */
    assert_int_equal(auth_key_revoke(f->auth, &by, "blue", key.id, &err), 0);
    by.scopes = SCOPE_ADMIN;
    assert_int_equal(auth_key_revoke(f->auth, &by, "blue", "reader", &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
}

static void test_nobody_lives_longer_than_his_maker(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_key key;
    char secret[AUTH_KEY_SIZE], child[AUTH_KEY_SIZE];
    struct principal admin = fixture_caller(f, f->admin);
    const unsigned scopes = SCOPE_READ | SCOPE_WRITE | SCOPE_ADMIN;
    assert_int_equal(
        make(f, &admin, (struct key_request){"short", "blue", scopes, 600}, secret, &key, &err), 0);
    struct principal by = fixture_caller(f, secret);
    static const int64_t lifetimes[] = {0, 6000};
    for (size_t i = 0; i < ARRAY_LEN(lifetimes); i++) {
        struct key_request request = {"child", "blue", SCOPE_READ, lifetimes[i]};
        assert_int_equal(make(f, &by, request, child, &key, &err), -1);
        assert_int_equal(err.code, ERROR_FORBIDDEN);
    }
    assert_int_equal(
        make(f, &by, (struct key_request){"child", "blue", SCOPE_READ, 60}, child, &key, &err), 0);
}

static void test_names(void **state)
{
    struct fixture *f = *state;
    struct principal admin = fixture_caller(f, f->admin);
    struct store_key key;
    char secret[AUTH_KEY_SIZE];
    static const struct {
        const char *name;
        enum error_code code;
    } rows[] = {
        {"fine", ERROR_NONE},
        {"fine", ERROR_ALREADY_EXISTS},
        {"reader", ERROR_ALREADY_EXISTS},
        {"admin", ERROR_INVALID_NAME},
        {"anonymous", ERROR_INVALID_NAME},
        {"", ERROR_INVALID_NAME},
        {"Big", ERROR_INVALID_NAME},
        {"a b", ERROR_INVALID_NAME},
        {"a\nb", ERROR_INVALID_NAME},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        struct key_request request = {rows[i].name, "blue", SCOPE_READ, 0};
        make(f, &admin, request, secret, &key, &err);
        assert_int_equal(err.code, rows[i].code);
    }
    struct error err;
    struct key_request elsewhere = {"fine", "default", SCOPE_READ, 0};
    assert_int_equal(make(f, &admin, elsewhere, secret, &key, &err), 0);
}

static void test_limit(void **state)
{
    struct fixture *f = *state;
    struct principal admin = fixture_caller(f, f->admin);
    struct error err = {0};
    struct store_key key, *items;
    char secret[AUTH_KEY_SIZE], name[16];
    size_t count;
    for (int i = 1; i < KEYS_PER_WORKSPACE_MAX; i++) { /* blue has the reader */
        snprintf(name, sizeof(name), "k%d", i);
        assert_int_equal(
            make(f, &admin, (struct key_request){name, "blue", SCOPE_READ, 0}, secret, &key, &err),
            0);
    }
    assert_int_equal(
        make(f, &admin, (struct key_request){"more", "blue", SCOPE_READ, 0}, secret, &key, &err),
        -1);
    assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
    auth_keys(f->auth, "blue", f->arena, &items, &count);
    assert_int_equal(count, KEYS_PER_WORKSPACE_MAX);
    auth_keys(f->auth, "default", f->arena, &items, &count);
    assert_int_equal(count, 1);
    assert_string_equal(items[0].name, "admin");
}

static void test_first_key_stays(void **state)
{
    struct fixture *f = *state;
    struct principal who, admin = fixture_caller(f, f->admin);
    struct error err = {0};
    assert_int_equal(auth_key_revoke(f->auth, &admin, "default", KEY_FIRST, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    /* Another one in the file replaces it. */
    char hash[65];
    auth_hash_key("cella_another", hash);
    assert_int_equal(auth_store_first_key(f->store, hash, &err), 0);
    auth_free(f->auth);
    assert_int_equal(auth_new(f->store, false, &f->auth, NULL), 0);
    assert_int_equal(auth_check(f->auth, "cella_another", PEER, SCOPE_SERVER, &who, &err), 0);
    assert_int_equal(auth_check(f->auth, f->admin, PEER, SCOPE_READ, &who, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        auth_test(test_life),
        auth_test(test_nobody_grants_more_than_he_has),
        auth_test(test_nobody_lives_longer_than_his_maker),
        auth_test(test_names),
        auth_test(test_limit),
        auth_test(test_first_key_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
