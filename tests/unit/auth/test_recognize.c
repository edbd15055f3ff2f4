/* SPDX-License-Identifier: Apache-2.0 */

/* What is a credential of this server's, and what only looks like one. */

#include "auth/recognize.h"

#include "auth/box_token.h"
#include "auth/issuers.h"
#include "fixture.h"

#define ISSUERS                                                                                    \
    "{\"issuers\":[{\"issuer\":\"a\",\"audience\":\"b\",\"jwks\":{\"keys\":[{\"kty\":\"oct\","     \
    "\"k\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}}]}"

/* {"alg":"HS256"}, claims, and a signature that nobody has looked at */
#define JWT(claims) "eyJhbGciOiJIUzI1NiJ9." claims ".AAAA"
#define A_FOR_B     "eyJpc3MiOiJhIiwiYXVkIjoiYiJ9"         /* {"iss":"a","aud":"b"} */
#define A_FOR_BOTH  "eyJpc3MiOiJhIiwiYXVkIjpbImMiLCJiIl19" /* {"iss":"a","aud":["c","b"]} */
#define A_FOR_C     "eyJpc3MiOiJhIiwiYXVkIjoiYyJ9"         /* {"iss":"a","aud":"c"} */
#define Z_FOR_B     "eyJpc3MiOiJ6IiwiYXVkIjoiYiJ9"         /* {"iss":"z","aud":"b"} */

static void test_keys(void **state)
{
    struct fixture *f = *state;
    char e2b[E2B_KEY_SIZE];
    auth_key_to_e2b(f->admin, e2b);
    assert_true(auth_recognizes(f->auth, f->arena, f->admin));
    assert_true(auth_recognizes(f->auth, f->arena, e2b));
    assert_true(auth_recognizes(f->auth, f->arena, "cella_nobodys"));
    assert_true(auth_recognizes(NULL, f->arena, e2b));
    /* Such as E2B itself gives out, and a program may ask for. */
    assert_false(
        auth_recognizes(f->auth, f->arena, "e2b_0123456789abcdef0123456789abcdef01234567"));
    static const char *const others[] = {"", "e2b_", "x", "a.b", "a.b.c", "sk-cella_x"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(auth_recognizes(f->auth, f->arena, others[i]));
}

static void test_tokens(void **state)
{
    struct fixture *f = *state;
    int64_t soon = time_now_ms() / 1000 + 60;
    struct token_claims api = {.audience = TOKEN_FOR_API,
                               .subject = "reader",
                               .workspace = "blue",
                               .scopes = SCOPE_READ,
                               .expires_s = soon};
    assert_true(auth_recognizes(f->auth, f->arena, auth_token_issue(f->auth, f->arena, &api)));
    assert_false(auth_recognizes(f->auth, f->arena, JWT(A_FOR_B))); /* nobody else is trusted */
}

/* Those that an issuer of ours has made for others are for others. */
static void test_jwts_of_issuers(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    if (auth_set_issuers(f->auth, slice_of(ISSUERS), NULL, NULL, NULL, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(auth_recognizes(f->auth, f->arena, JWT(A_FOR_B)));
    assert_true(auth_recognizes(f->auth, f->arena, JWT(A_FOR_BOTH)));
    assert_false(auth_recognizes(f->auth, f->arena, JWT(A_FOR_C)));
    assert_false(auth_recognizes(f->auth, f->arena, JWT(Z_FOR_B)));
}

static void test_tokens_of_sandboxes(void **state)
{
    struct fixture *f = *state;
    char inside[BOX_TOKEN_SIZE], traffic[BOX_TOKEN_SIZE], ended[BOX_TOKEN_SIZE];
    const struct principal by = {.expires_ms = 1000};
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", NULL, inside);
    auth_box_token(f->auth, BOX_TRAFFIC, "aaaaaaaaaaaa", NULL, traffic);
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", &by, ended);
    assert_true(auth_recognizes_box(f->auth, "aaaaaaaaaaaa", inside));
    assert_true(auth_recognizes_box(f->auth, "aaaaaaaaaaaa", traffic));
    assert_true(auth_recognizes_box(f->auth, "aaaaaaaaaaaa", ended));
    assert_false(auth_recognizes_box(f->auth, "bbbbbbbbbbbb", inside));
    inside[0] = inside[0] == 'a' ? 'b' : 'a';
    assert_false(auth_recognizes_box(f->auth, "aaaaaaaaaaaa", inside));
    assert_false(auth_recognizes_box(f->auth, "aaaaaaaaaaaa", ""));
    assert_false(auth_recognizes_box(f->auth, "aaaaaaaaaaaa", "the program's"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        auth_test(test_keys),
        auth_test(test_tokens),
        auth_test(test_jwts_of_issuers),
        auth_test(test_tokens_of_sandboxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
