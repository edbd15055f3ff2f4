/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens of sandboxes, signatures made with them, and keys in E2B's form. */

#include "auth/box_token.h"

#include "auth/issuers.h"
#include "auth/sandbox_token.h"
#include "auth/state.h"
#include "fixture.h"

#define VECTOR_TOKEN   "432b0fa978a406f0a31ea47c5ab272e262d379313356ae647978ae5d9e837c9a"
#define VECTOR_PLAIN   "v1_wkEB/SA2nCk+mZ2q7PJkQuIqT3zcMEzaw3lAaJ5U/Z8"
#define VECTOR_EXPIRES "v1_ZJc76yZ89l90XAAb4T4AKJYGo7cmD0lgtQWP5wDX7Yg"

static void test_each_sandbox_has_its_own(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    char one[BOX_TOKEN_SIZE], again[BOX_TOKEN_SIZE], two[BOX_TOKEN_SIZE];
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", NULL, one);
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", NULL, again);
    auth_box_token(f->auth, BOX_INSIDE, "bbbbbbbbbbbb", NULL, two);
    assert_int_equal(strlen(one), BOX_TOKEN_LEN);
    assert_string_equal(one, again);
    assert_string_not_equal(one, two);
    assert_int_equal(auth_box_check(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", one, PEER, &err), 0);
    assert_int_equal(auth_box_check(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", two, PEER, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    assert_int_equal(auth_box_check(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", NULL, PEER, &err), -1);
    assert_int_equal(auth_box_check(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", "", PEER, &err), -1);
}

/* Who guesses is made to wait; who is right is let in all the same. */
static void test_guesses_are_counted(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    char token[BOX_TOKEN_SIZE];
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", NULL, token);
    for (int i = 0; i <= THROTTLE_BURST; i++)
        assert_int_equal(
            auth_box_check(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", "x", "192.0.2.8:1", &err), -1);
    assert_int_equal(err.code, ERROR_TOO_MANY_ATTEMPTS);
    assert_int_equal(
        auth_box_check(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", token, "192.0.2.8:1", &err), 0);
}

/* The vector was made by the clients' own rule, for a secret of zeros. */
static void test_signatures(void **state)
{
    struct fixture *f = *state;
    memset(f->auth->token_secret, 0, TOKEN_SECRET_SIZE);
    char token[BOX_TOKEN_SIZE];
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", NULL, token);
    assert_string_equal(token, VECTOR_TOKEN);
    assert_true(auth_box_signed(f->auth, "aaaaaaaaaaaa", "a.txt:read:", NULL, VECTOR_PLAIN));
    assert_true(
        auth_box_signed(f->auth, "aaaaaaaaaaaa", "a.txt:read:", "1700000000", VECTOR_EXPIRES));
    assert_false(auth_box_signed(f->auth, "aaaaaaaaaaaa", "a.txt:write:", NULL, VECTOR_PLAIN));
    assert_false(
        auth_box_signed(f->auth, "aaaaaaaaaaaa", "a.txt:read:", "1700000001", VECTOR_EXPIRES));
    assert_false(auth_box_signed(f->auth, "bbbbbbbbbbbb", "a.txt:read:", NULL, VECTOR_PLAIN));
    assert_false(auth_box_signed(f->auth, "aaaaaaaaaaaa", "a.txt:read:", NULL, "v1_"));
    assert_false(auth_box_signed(f->auth, "aaaaaaaaaaaa", "a.txt:read:", NULL, ""));
}

#define ISSUERS(name)                                                                              \
    "{\"issuers\":[{\"issuer\":\"" name                                                            \
    "\",\"audience\":\"b\",\"jwks\":{\"keys\":[{\"kty\":\"oct\","                                  \
    "\"k\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}}]}"
#define TAG_OF_A "ca978112" /* the SHA-256 of "a" */

static void trust(struct fixture *f, const char *config)
{
    struct error err = {0};
    if (auth_set_issuers(f->auth, slice_of(config), NULL, NULL, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static int check_inside(struct fixture *f, const char *token)
{
    struct error err = {0};
    return auth_box_check(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", token, PEER, &err);
}

/* One for somebody with a JWT: it ends when that does, and with the trust in its issuer. */
static void test_those_with_an_end(void **state)
{
    struct fixture *f = *state;
    struct principal by = {.by_jwt = true, .issuer = TAG_OF_A};
    char token[BOX_TOKEN_SIZE], ports[BOX_TOKEN_SIZE], late[BOX_TOKEN_SIZE];
    trust(f, ISSUERS("a"));
    by.expires_ms = time_now_ms() + 600 * 1000;
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", &by, token);
    auth_box_token(f->auth, BOX_TRAFFIC, "aaaaaaaaaaaa", &by, ports);
    assert_int_equal(strlen(token), BOX_TOKEN_SIZE - 1);
    assert_int_equal(check_inside(f, token), 0);
    assert_int_equal(check_inside(f, ports), -1);

    by.expires_ms = time_now_ms() - 1000;
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", &by, late);
    assert_int_equal(check_inside(f, late), -1);

    for (size_t i = 0; i < BOX_TOKEN_SIZE - 1; i++) { /* each digit of it counts */
        char other[BOX_TOKEN_SIZE];
        memcpy(other, token, sizeof(other));
        other[i] = other[i] == '0' ? '1' : '0';
        assert_int_equal(check_inside(f, other), -1);
        other[i] = '\0';
        assert_int_equal(check_inside(f, other), -1);
    }
    trust(f, ISSUERS("other"));
    assert_int_equal(check_inside(f, token), -1);
    trust(f, "");
    assert_int_equal(check_inside(f, token), -1);
    trust(f, ISSUERS("a"));
    assert_int_equal(check_inside(f, token), 0);
}

static bool exists(void *ctx, const char *sandbox_id)
{
    return true;
}

static void test_revoking_makes_all_of_them_worthless(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    const struct principal by = {
        .by_jwt = true, .issuer = TAG_OF_A, .expires_ms = time_now_ms() + 600 * 1000};
    char own[BOX_TOKEN_SIZE], token[BOX_TOKEN_SIZE];
    trust(f, ISSUERS("a"));
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", NULL, own);
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", &by, token);
    /* There is no such sandbox in the store, which says so; in memory it holds all the same. */
    assert_int_equal(auth_sandbox_tokens_revoke(f->auth, "aaaaaaaaaaaa", exists, NULL, &err), -1);
    assert_int_equal(check_inside(f, own), -1);
    assert_int_equal(check_inside(f, token), -1);
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", NULL, own);
    assert_int_equal(check_inside(f, own), 0);
}

/* However many are handed out, few are remembered. */
static void test_what_is_remembered_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct principal by = {.by_jwt = true, .issuer = TAG_OF_A};
    char token[BOX_TOKEN_SIZE], id[SANDBOX_ID_LEN + 1];
    trust(f, ISSUERS("a"));
    for (int i = 0; i < BOX_GRANTED_MAX + 10; i++) {
        snprintf(id, sizeof(id), "%012d", i);
        by.expires_ms = time_now_ms() + (600 + i) * 1000;
        for (int n = 0; n < 3; n++)
            auth_box_token(f->auth, BOX_INSIDE, id, &by, token);
        by.expires_ms += 1000;
        auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", &by, token);
    }
    assert_int_equal(check_inside(f, token), 0);
    assert_int_equal(auth_box_check(f->auth, BOX_INSIDE, id, token, PEER, NULL), -1);
}

static void test_keys_in_e2bs_form(void **state)
{
    struct fixture *f = *state;
    char e2b[E2B_KEY_SIZE], back[AUTH_KEY_SIZE];
    struct principal who;
    struct error err = {0};
    auth_key_to_e2b(f->admin, e2b);
    assert_memory_equal(e2b, "e2b_", 4);
    assert_int_equal(strspn(e2b + 4, "0123456789abcdef"), strlen(e2b + 4));
    assert_true(auth_key_from_e2b(e2b, back));
    assert_string_equal(back, f->admin);
    assert_int_equal(auth_check(f->auth, e2b, PEER, SCOPE_READ, &who, &err), 0);
    static const char *const bad[] = {"",       "e2b_",   "e2b_0",   "e2b_00",
                                      "e2b_6A", "e2b_zz", "cella_61"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(auth_key_from_e2b(bad[i], back));
    char longer[4 + 2 * AUTH_KEY_SIZE + 1];
    memset(longer, '6', sizeof(longer) - 1);
    memcpy(longer, "e2b_", 4);
    longer[sizeof(longer) - 1] = '\0';
    assert_false(auth_key_from_e2b(longer, back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        auth_test(test_each_sandbox_has_its_own),
        auth_test(test_guesses_are_counted),
        auth_test(test_signatures),
        auth_test(test_those_with_an_end),
        auth_test(test_revoking_makes_all_of_them_worthless),
        auth_test(test_what_is_remembered_is_bounded),
        auth_test(test_keys_in_e2bs_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
