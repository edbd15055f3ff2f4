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
#define KEPT     "aaaaaaaaaaaa"
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

/* A key that has an end gives no more than it has; so does one that was made with a JWT, which ends
 * with the trust in its issuer, too. */
static void test_keys_with_an_end(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    const struct key_request request = {.name = "short",
                                        .workspace = WORKSPACE_DEFAULT,
                                        .scopes = SCOPE_READ | SCOPE_ADMIN,
                                        .lifetime_s = 600};
    struct principal admin = fixture_caller(f, f->admin), by;
    char plain[AUTH_KEY_SIZE], made[AUTH_KEY_SIZE], token[BOX_TOKEN_SIZE];
    struct store_key row;
    trust(f, ISSUERS("a"));
    assert_int_equal(auth_key_create(f->auth, &admin, &request, plain, &row, &err), 0);
    by = fixture_caller(f, plain);
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", &by, token);
    assert_int_equal(strlen(token), BOX_TOKEN_SIZE - 1);
    assert_int_equal(check_inside(f, token), 0);
    by.expires_ms = time_now_ms() - 1000;
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", &by, token);
    assert_int_equal(check_inside(f, token), -1);

    struct principal jwt = admin;
    struct key_request next = request;
    next.name = "of-a-jwt";
    jwt.by_jwt = true;
    jwt.expires_ms = time_now_ms() + 3600 * 1000;
    memcpy(jwt.issuer, TAG_OF_A, sizeof(jwt.issuer));
    assert_int_equal(auth_key_create(f->auth, &jwt, &next, plain, &row, &err), 0);
    by = fixture_caller(f, plain);
    assert_string_equal(by.issuer, TAG_OF_A);
    next.name = "of-that-key";
    next.lifetime_s = 60;
    assert_int_equal(auth_key_create(f->auth, &by, &next, made, &row, &err), 0);
    auth_box_token(f->auth, BOX_INSIDE, "aaaaaaaaaaaa", &by, token);
    assert_int_equal(check_inside(f, token), 0);
    auth_free(f->auth); /* it is in the store */
    assert_int_equal(auth_new(f->store, false, &f->auth, &err), 0);
    assert_int_equal(auth_check(f->auth, plain, PEER, SCOPE_READ, &by, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    assert_int_equal(auth_check(f->auth, made, PEER, SCOPE_READ, &by, &err), -1);
    assert_int_equal(check_inside(f, token), -1);
    trust(f, ISSUERS("a"));
    assert_int_equal(auth_check(f->auth, plain, PEER, SCOPE_READ, &by, &err), 0);
    assert_int_equal(auth_check(f->auth, made, PEER, SCOPE_READ, &by, &err), 0);
    assert_int_equal(check_inside(f, token), 0);
}

/* However long a JWT counts, what its holder hands out counts for a day. */
static void test_no_longer_than_a_day(void **state)
{
    struct principal by = {.issuer = TAG_OF_A};
    int64_t now_ms = time_now_ms(), day_ms = JWT_GRANT_S * INT64_C(1000);
    by.expires_ms = now_ms + 100 * day_ms;
    assert_in_range(auth_gives_until_ms(&by), now_ms + day_ms / 2, now_ms + day_ms + 60000);
    by.expires_ms = now_ms + 60000;
    assert_int_equal(auth_gives_until_ms(&by), by.expires_ms);
    by.issuer[0] = '\0';
    by.expires_ms = now_ms + 100 * day_ms;
    assert_int_equal(auth_gives_until_ms(&by), by.expires_ms);
    by.expires_ms = 0;
    assert_int_equal(auth_gives_until_ms(&by), 0);
}

/* As the clients do: v1_ and the SHA-256 of "text:token", in base64 without its padding. */
static bool is_remembered(struct fixture *f, const char *id, const char *token)
{
    char text[160], signature[64] = "v1_";
    unsigned char hash[32];
    int n = snprintf(text, sizeof(text), "a:read::%s", token);
    assert_int_equal(EVP_Digest(text, (size_t)n, hash, NULL, EVP_sha256(), NULL), 1);
    EVP_EncodeBlock((unsigned char *)signature + 3, hash, sizeof(hash));
    signature[46] = '\0';
    return auth_box_signed(f->auth, id, "a:read:", NULL, signature);
}

/* What is used stays; what has ended goes first, in its sandbox and among them. */
static void test_what_is_used_is_remembered(void **state)
{
    struct fixture *f = *state;
    struct principal by = {.by_jwt = true, .issuer = TAG_OF_A}, other = by;
    char used[BOX_TOKEN_SIZE], token[BOX_TOKEN_SIZE], id[SANDBOX_ID_LEN + 1];
    trust(f, ISSUERS("a"));
    by.expires_ms = time_now_ms() + 600 * 1000;
    auth_box_token(f->auth, BOX_INSIDE, KEPT, &by, used);
    for (int i = 0; i < 3 * BOX_GRANTS_MAX; i++) { /* of which half have ended at once */
        other.expires_ms = time_now_ms() + (i % 2 == 0 ? -1000 - i * 1000 : (700 + i) * 1000);
        auth_box_token(f->auth, BOX_INSIDE, KEPT, &other, token);
        if (i % 3 == 0)
            assert_int_equal(check_inside(f, used), 0);
    }
    assert_true(is_remembered(f, KEPT, used));
    assert_true(is_remembered(f, KEPT, token));
    for (int i = 0; i < BOX_GRANTED_MAX + 100; i++) {
        snprintf(id, sizeof(id), "%012d", i);
        auth_box_token(f->auth, BOX_INSIDE, id, &other, token);
        if (i % 1000 == 0)
            assert_int_equal(check_inside(f, used), 0);
    }
    assert_true(is_remembered(f, KEPT, used));
    assert_true(is_remembered(f, id, token));
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
        auth_test(test_keys_with_an_end),
        auth_test(test_no_longer_than_a_day),
        auth_test(test_what_is_used_is_remembered),
        auth_test(test_what_is_remembered_is_bounded),
        auth_test(test_keys_in_e2bs_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
