/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/jws.h"

#include "fixture.h"

/* RFC 7515, appendix A.1. */
#define RFC_HEADER "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"
#define RFC_PAYLOAD                                                                                \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl" \
    "fQ"
#define RFC_SIGNATURE "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define RFC_KEY                                                                                    \
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"

static int arena_setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int arena_teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static struct slice rfc_key(struct arena *arena)
{
    struct slice key;
    assert_true(base64url_decode(arena, slice_of(RFC_KEY), &key));
    assert_int_equal(key.len, 64);
    return key;
}

static void test_rfc7515_a1(void **state)
{
    struct slice payload;
    struct error err = {0};
    static const char token[] = RFC_HEADER "." RFC_PAYLOAD "." RFC_SIGNATURE;
    if (jws_open(*state, rfc_key(*state), slice_of(token), &payload, &err) < 0)
        fail_msg("%s", err.message);
    static const char text[] =
        "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";
    assert_true(slice_eq(payload, slice_of(text)));
    assert_true(slice_eq(base64url_encode(*state, slice_of(text)), slice_of(RFC_PAYLOAD)));
}

/* RFC 7519 §6.1 (alg none) and what else people have tried: no key makes any of it right. */
static void test_refused(void **state)
{
    static const char *const tokens[] = {
        "eyJhbGciOiJub25lIn0." RFC_PAYLOAD ".",
        "eyJhbGciOiJub25lIn0." RFC_PAYLOAD "." RFC_SIGNATURE,
        RFC_HEADER "." RFC_PAYLOAD ".",
        RFC_HEADER "." RFC_PAYLOAD,
        RFC_HEADER "." RFC_PAYLOAD "." RFC_SIGNATURE "=",
        RFC_HEADER "." RFC_PAYLOAD "." RFC_SIGNATURE ".",
        RFC_HEADER "." RFC_PAYLOAD "." RFC_SIGNATURE "." RFC_SIGNATURE,
        RFC_HEADER "." RFC_PAYLOAD "." RFC_SIGNATURE " ",
        " " RFC_HEADER "." RFC_PAYLOAD "." RFC_SIGNATURE,
        RFC_HEADER "A." RFC_PAYLOAD "." RFC_SIGNATURE,
        RFC_HEADER ".A" RFC_PAYLOAD "." RFC_SIGNATURE,
        /* The last sign differs in the bits that mean nothing. */
        RFC_HEADER "." RFC_PAYLOAD ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXl",
        RFC_HEADER "." RFC_PAYLOAD ".dBjftJeZ4CVP+mB92K27uhbUJU1p1r/wW1gFWFOEjXk",
        "",
        ".",
        "..",
        "...",
        "x",
    };
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        struct error err = {0};
        struct slice payload = {"untouched", 9};
        assert_int_equal(jws_open(*state, rfc_key(*state), slice_of(tokens[i]), &payload, &err),
                         -1);
        assert_int_equal(err.code, ERROR_UNAUTHORIZED);
        assert_int_equal(payload.len, 9);
    }
}

/* Every single bit of a token counts. */
static void test_one_bit(void **state)
{
    struct slice secret = slice_of("0123456789abcdef0123456789abcdef"), payload;
    const char *token = jws_sign(*state, secret, slice_of("{\"a\":1}"));
    assert_int_equal(jws_open(*state, secret, slice_of(token), &payload, NULL), 0);
    assert_true(slice_eq(payload, slice_of("{\"a\":1}")));
    char *changed = arena_strdup(*state, token);
    for (size_t i = 0; changed[i] != '\0'; i++)
        for (int bit = 0; bit < 7; bit++) {
            changed[i] ^= (char)(1 << bit);
            assert_int_equal(
                jws_open(*state, secret, (struct slice){changed, strlen(token)}, &payload, NULL),
                -1);
            changed[i] ^= (char)(1 << bit);
        }
    struct slice other = slice_of("1123456789abcdef0123456789abcdef");
    assert_int_equal(jws_open(*state, other, slice_of(token), &payload, NULL), -1);
}

/* Signed with the right secret, but by something that says it is another algorithm. */
static void test_headers(void **state)
{
    static const struct {
        const char *header;
        int result;
    } rows[] = {
        {"{\"alg\":\"HS256\"}", 0},
        {"{\"typ\":\"JWT\",\"alg\":\"HS256\"}", 0},
        {"{\"alg\":\"none\"}", -1},
        {"{\"alg\":\"HS512\"}", -1},
        {"{\"alg\":\"hs256\"}", -1},
        {"{\"alg\":\"RS256\"}", -1},
        {"{\"alg\":[\"HS256\"]}", -1},
        {"{\"alg\":\"HS256\",\"alg\":\"none\"}", -1},
        {"{\"alg\":\"HS256\",\"typ\":\"JOSE\"}", -1},
        {"{\"alg\":\"HS256\",\"crit\":[\"exp\"]}", -1},
        {"{\"alg\":\"HS256\",\"kid\":\"../../dev/null\"}", -1},
        {"{\"alg\":\"HS256\",\"jwk\":{}}", -1},
        {"{}", -1},
        {"[]", -1},
        {"", -1},
        {"null", -1},
    };
    struct slice secret = slice_of("secret"), payload;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice head = base64url_encode(*state, slice_of(rows[i].header));
        const char *text = arena_printf(*state, "%.*s.e30", (int)head.len, head.data);
        const char *token = jws_sign_text(*state, secret, text);
        if (jws_open(*state, secret, slice_of(token), &payload, NULL) != rows[i].result)
            fail_msg("%s", rows[i].header);
    }
}

static void test_size(void **state)
{
    struct slice secret = slice_of("secret"), payload;
    char *text = arena_alloc(*state, TOKEN_MAX + 1);
    memset(text, 'a', TOKEN_MAX);
    const char *token = jws_sign(*state, secret, slice_of(text));
    assert_true(strlen(token) > TOKEN_MAX);
    assert_int_equal(jws_open(*state, secret, slice_of(token), &payload, NULL), -1);
    text[TOKEN_MAX / 2] = '\0';
    token = jws_sign(*state, secret, slice_of(text));
    assert_int_equal(jws_open(*state, secret, slice_of(token), &payload, NULL), 0);
}

static void test_base64url(void **state)
{
    /* RFC 4648 §10, without the padding. */
    static const char *const rows[][2] = {
        {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
        {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff", "-_8"},
    };
    struct slice back;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(slice_eq(base64url_encode(*state, slice_of(rows[i][0])), slice_of(rows[i][1])));
        assert_true(base64url_decode(*state, slice_of(rows[i][1]), &back));
        assert_true(slice_eq(back, slice_of(rows[i][0])));
    }
    static const char *const wrong[] = {"Z",      "Zg==", "Zh",  "Zm9", "Zm9vY",    "Zm 9v",
                                        "Zm9v\n", "+_8",  "-/8", "Zg=", "Zm9vYmFyZ"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(base64url_decode(*state, slice_of(wrong[i]), &back));
    assert_false(base64url_decode(*state, (struct slice){"Zm9\0", 4}, &back));
}

#define jws_test(function) cmocka_unit_test_setup_teardown(function, arena_setup, arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        jws_test(test_rfc7515_a1), jws_test(test_refused), jws_test(test_one_bit),
        jws_test(test_headers),    jws_test(test_size),    jws_test(test_base64url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
