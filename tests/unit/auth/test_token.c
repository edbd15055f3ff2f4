/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/token.h"

#include "auth/jws.h"
#include "auth/state.h"
#include "fixture.h"

static struct token_claims claims_for(const char *subject, unsigned scopes)
{
    return (struct token_claims){.audience = TOKEN_FOR_API,
                                 .subject = subject,
                                 .workspace = "blue",
                                 .scopes = scopes,
                                 .expires_s = time_now_ms() / 1000 + 600};
}

static const char *issue(struct fixture *f, struct token_claims claims)
{
    return auth_token_issue(f->auth, f->arena, &claims);
}

static const char *sign(struct fixture *f, const char *payload)
{
    struct slice secret = {(const char *)f->auth->token_secret, TOKEN_SECRET_SIZE};
    return jws_sign(f->arena, secret, slice_of(payload));
}

static void test_says_what_was_said(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct token_claims said, claims = claims_for("reader", SCOPE_READ | SCOPE_WRITE);
    const char *token = auth_token_issue(f->auth, f->arena, &claims);
    assert_true(strlen(token) < 512);
    assert_int_equal(auth_token_verify(f->auth, token, TOKEN_FOR_API, f->arena, &said, &err), 0);
    assert_string_equal(said.subject, "reader");
    assert_string_equal(said.workspace, "blue");
    assert_string_equal(said.id, claims.id);
    assert_int_equal(said.scopes, SCOPE_READ | SCOPE_WRITE);
    assert_int_equal(said.expires_s, claims.expires_s);
    assert_int_equal(said.issued_s, claims.issued_s);
    assert_string_not_equal(issue(f, claims), token); /* each has an id of its own */
}

/* Only who is meant by it takes it: a preview's token does not open the API, nor the other way. */
static void test_audience(void **state)
{
    struct fixture *f = *state;
    struct token_claims said, claims = claims_for("reader", 0);
    struct principal who;
    struct error err = {0};
    claims.audience = "preview/abc/web";
    const char *token = issue(f, claims);
    assert_int_equal(auth_token_verify(f->auth, token, "preview/abc/web", f->arena, &said, &err),
                     0);
    assert_int_equal(auth_token_verify(f->auth, token, "preview/abc/we", f->arena, &said, &err),
                     -1);
    assert_int_equal(auth_token_verify(f->auth, token, TOKEN_FOR_API, f->arena, &said, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    assert_int_equal(auth_check(f->auth, token, PEER, SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    token = issue(f, claims_for("reader", SCOPE_READ));
    assert_int_equal(auth_token_verify(f->auth, token, "preview/abc/web", f->arena, &said, &err),
                     -1);
}

static void test_opens_the_api(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    struct error err = {0};
    const char *token = issue(f, claims_for("reader", SCOPE_READ));
    assert_int_equal(auth_check(f->auth, token, PEER, SCOPE_READ, &who, &err), 0);
    assert_string_equal(who.name, "reader");
    assert_string_equal(who.workspace, "blue");
    assert_string_equal(who.key_id, "reader");
    assert_true(who.by_token);
    assert_true(who.expires_ms > time_now_ms());
}

/* What a token says it may do is no more than what its key may now; its workspace is the key's. */
static void test_never_more_than_the_key(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    struct error err = {0};
    struct token_claims claims = claims_for("reader", SCOPE_ALL);
    claims.workspace = "default";
    const char *token = issue(f, claims);
    assert_int_equal(auth_check(f->auth, token, PEER, SCOPE_WRITE, &who, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
    assert_int_equal(auth_check(f->auth, token, PEER, SCOPE_READ, &who, &err), 0);
    assert_int_equal(who.scopes, SCOPE_READ);
    assert_string_equal(who.workspace, "blue");
    /* And less, when it was issued for less. */
    token = issue(f, claims_for("admin", SCOPE_READ));
    assert_int_equal(auth_check(f->auth, token, PEER, SCOPE_WRITE, &who, &err), -1);
    assert_int_equal(err.code, ERROR_FORBIDDEN);
}

static void test_ends_with_its_key(void **state)
{
    struct fixture *f = *state;
    struct principal who, admin = fixture_caller(f, f->admin);
    struct error err = {0};
    const char *token = issue(f, claims_for("reader", SCOPE_READ));
    assert_int_equal(auth_check(f->auth, token, PEER, SCOPE_READ, &who, &err), 0);
    assert_int_equal(auth_key_revoke(f->auth, &admin, "blue", "reader", &err), 0);
    assert_int_equal(auth_check(f->auth, token, PEER, SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "is gone"));
}

static void test_outlives_a_restart(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    const char *token = issue(f, claims_for("reader", SCOPE_READ));
    auth_free(f->auth);
    assert_int_equal(auth_new(f->store, false, &f->auth, NULL), 0);
    assert_int_equal(auth_check(f->auth, token, PEER, SCOPE_READ, &who, NULL), 0);
}

/* Signed by the server, and still not good enough. */
static void test_claims(void **state)
{
    struct fixture *f = *state;
    long long now = time_now_ms() / 1000;
#define REST "\"sub\":\"reader\",\"workspace\":\"blue\",\"scope\":\"read\",\"jti\":\"x\""
    const struct {
        const char *payload;
        int result;
        const char *word;
    } rows[] = {
        {"{\"iss\":\"cella\",\"aud\":\"api\",\"iat\":%lld,\"nbf\":%lld,\"exp\":%lld," REST "}", 0,
         ""},
        {"{\"iss\":\"other\",\"aud\":\"api\",\"iat\":%lld,\"nbf\":%lld,\"exp\":%lld," REST "}", -1,
         "something else"},
        {"{\"iss\":\"cella\",\"aud\":[\"api\"],\"iat\":%lld,\"nbf\":%lld,\"exp\":%lld," REST "}",
         -1, "something else"},
        {"{\"iss\":\"cella\",\"aud\":\"api\",\"iat\":%lld,\"nbf\":%lld,\"exp\":%lld}", -1,
         "something else"},
        {"{\"iss\":\"cella\",\"aud\":\"api\",\"iat\":%lld,\"nbf\":%lld,\"x\":%lld," REST "}", -1,
         "something else"},
        {"{\"iss\":\"cella\",\"aud\":\"api\",\"iat\":%lld,\"nbf\":%lld,\"exp\":\"%lld\"," REST "}",
         -1, "something else"},
        {"{\"iss\":\"cella\",\"aud\":\"api\",\"iat\":%lld,\"nbf\":%lld,\"exp\":-%lld," REST "}", -1,
         "something else"},
        {"[%lld,%lld,%lld]", -1, "something else"},
        {"", -1, "something else"},
    };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct token_claims said;
        struct error err = {0};
        char payload[512];
        snprintf(payload, sizeof(payload), rows[i].payload, now, now, now + 60);
        int result =
            auth_token_verify(f->auth, sign(f, payload), TOKEN_FOR_API, f->arena, &said, &err);
        if (result != rows[i].result || strstr(err.message, rows[i].word) == NULL)
            fail_msg("%s: %s", payload, err.message);
    }
#pragma GCC diagnostic pop
}

static void test_time(void **state)
{
    struct fixture *f = *state;
    long long now = time_now_ms() / 1000;
    const struct {
        long long nbf, exp;
        const char *word; /* NULL: fine */
    } rows[] = {
        {now, now + 1000, NULL},         {now + 30, now + 1000, NULL}, /* a clock set back */
        {now - 100, now, "has expired"}, {now - 100, now - 1, "has expired"},
        {now - 100, 0, "has expired"},   {now + 3600, now + 7200, "not valid yet"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct token_claims said;
        struct error err = {0};
        char payload[512];
        snprintf(payload, sizeof(payload),
                 "{\"iss\":\"cella\",\"aud\":\"api\",\"iat\":%lld,\"nbf\":%lld,\"exp\":%lld," REST
                 "}",
                 rows[i].nbf, rows[i].nbf, rows[i].exp);
        int result =
            auth_token_verify(f->auth, sign(f, payload), TOKEN_FOR_API, f->arena, &said, &err);
        assert_int_equal(result, rows[i].word == NULL ? 0 : -1);
        if (rows[i].word != NULL)
            assert_non_null(strstr(err.message, rows[i].word));
    }
}

/* An old token is no guess; a forged one is. */
static void test_only_forgeries_count(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    struct error err = {0};
    struct token_claims old = claims_for("reader", SCOPE_READ);
    old.expires_s = time_now_ms() / 1000 - 5;
    const char *token = issue(f, old);
    for (int i = 0; i < 2 * THROTTLE_BURST; i++)
        assert_int_equal(auth_check(f->auth, token, PEER, SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    for (int i = 0; i <= THROTTLE_BURST; i++)
        assert_int_equal(auth_check(f->auth, "a.b.c", PEER, SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_TOO_MANY_ATTEMPTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        auth_test(test_says_what_was_said),
        auth_test(test_audience),
        auth_test(test_opens_the_api),
        auth_test(test_never_more_than_the_key),
        auth_test(test_ends_with_its_key),
        auth_test(test_outlives_a_restart),
        auth_test(test_claims),
        auth_test(test_time),
        auth_test(test_only_forgeries_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
