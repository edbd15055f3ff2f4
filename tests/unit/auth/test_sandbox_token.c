/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/sandbox_token.h"

#include "fixture.h"

#define BOX "abcdefghjkmn"

static const char *make(struct fixture *f, const struct principal *by, unsigned scopes,
                        struct error *err)
{
    const struct sandbox_token_request request = {BOX, by->workspace, scopes, 600};
    const char *token = NULL;
    int64_t expires_ms;
    return auth_sandbox_token(f->auth, f->arena, by, &request, &token, &expires_ms, err) == 0
               ? token
               : NULL;
}

static int check(struct fixture *f, const char *token, unsigned scope, struct principal *ret_who,
                 struct error *err)
{
    return auth_check(f->auth, token, PEER, scope, ret_who, err);
}

static void test_opens_what_is_inside(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct principal who, admin = fixture_caller(f, f->admin);
    const char *token = make(f, &admin, SCOPE_READ | SCOPE_WRITE, &err);
    assert_non_null(token);
    for (int i = 0; i < 2; i++) { /* the second time it is known */
        assert_int_equal(check(f, token, SCOPE_WRITE | ROUTE_INSIDE, &who, &err), 0);
        assert_string_equal(who.sandbox, BOX);
        assert_int_equal(who.scopes, SCOPE_READ | SCOPE_WRITE);
        assert_int_equal(check(f, token, SCOPE_READ | ROUTE_OF_CALLER, &who, &err), 0);
        assert_int_equal(check(f, token, SCOPE_READ, &who, &err), -1);
        assert_int_equal(err.code, ERROR_FORBIDDEN);
        assert_int_equal(check(f, token, SCOPE_READ | ROUTE_FORWARDS, &who, &err), -1);
        assert_int_equal(err.code, ERROR_FORBIDDEN);
    }
    token = make(f, &admin, SCOPE_READ, &err);
    assert_int_equal(check(f, token, SCOPE_WRITE | ROUTE_INSIDE, &who, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
}

static void test_grants_no_more_than_its_maker_has(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct principal admin = fixture_caller(f, f->admin), reader = fixture_caller(f, f->reader);
    assert_null(make(f, &reader, SCOPE_READ | SCOPE_WRITE, &err));
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    assert_non_null(make(f, &reader, SCOPE_READ, &err));
    assert_null(make(f, &admin, SCOPE_ADMIN | SCOPE_READ, &err));
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
}

static bool none_exists(void *ctx, const char *sandbox_id)
{
    return false;
}

static void test_revoked_at_once(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct principal who, admin = fixture_caller(f, f->admin);
    const char *token = make(f, &admin, SCOPE_READ, &err);
    assert_int_equal(check(f, token, SCOPE_READ | ROUTE_INSIDE, &who, &err), 0);
    /* There is no such sandbox in the store, which says so; in memory it holds all the same. */
    assert_int_equal(auth_sandbox_tokens_revoke(f->auth, BOX, none_exists, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_SANDBOX_NOT_FOUND);
    assert_int_equal(auth_token_generation(f->auth, BOX), 1);
    assert_int_equal(check(f, token, SCOPE_READ | ROUTE_INSIDE, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    token = make(f, &admin, SCOPE_READ, &err);
    assert_int_equal(check(f, token, SCOPE_READ | ROUTE_INSIDE, &who, &err), 0);
}

/* Its key's life is its own. */
static void test_dies_with_its_key(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_key key;
    char secret[AUTH_KEY_SIZE];
    struct principal who, admin = fixture_caller(f, f->admin);
    const struct key_request request = {"maker", "default", SCOPE_READ, 60};
    assert_int_equal(auth_key_create(f->auth, &admin, &request, secret, &key, &err), 0);
    struct principal maker = fixture_caller(f, secret);
    const struct sandbox_token_request wish = {BOX, "default", SCOPE_READ, 600};
    const char *token;
    int64_t expires_ms;
    assert_int_equal(
        auth_sandbox_token(f->auth, f->arena, &maker, &wish, &token, &expires_ms, &err), 0);
    assert_true(expires_ms <= key.expires_ms);
    assert_int_equal(check(f, token, SCOPE_READ | ROUTE_INSIDE, &who, &err), 0);
    assert_int_equal(auth_key_revoke(f->auth, &admin, "default", key.id, &err), 0);
    assert_int_equal(check(f, token, SCOPE_READ | ROUTE_INSIDE, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        auth_test(test_opens_what_is_inside),
        auth_test(test_grants_no_more_than_its_maker_has),
        auth_test(test_revoked_at_once),
        auth_test(test_dies_with_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
