/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/jwt.h"

#include "auth/jws.h"
#include "fixture.h"

static const char *token_of(struct arena *arena, const char *header, const char *claims)
{
    struct slice head = base64url_encode(arena, slice_of(header));
    struct slice body = base64url_encode(arena, slice_of(claims));
    return arena_printf(arena, "%.*s.%.*s.c2ln", (int)head.len, head.data, (int)body.len,
                        body.data);
}

static void test_parts(void **state)
{
    struct arena *arena = arena_new();
    struct jwt jwt;
    struct error err = {0};
    const char *token = token_of(
        arena, "{\"alg\":\"ES256\",\"kid\":\"a\",\"typ\":\"at+JWT\",\"x5t\":1}", "{\"iss\":\"b\"}");
    assert_int_equal(jwt_parse(arena, slice_of(token), &jwt, &err), 0);
    assert_int_equal(jwt.algorithm, JWT_ES256);
    assert_string_equal(jwt.key_id, "a");
    assert_true(slice_eq(jwt.signature, slice_of("sig")));
    assert_int_equal(jwt.text.len, strlen(token) - strlen(".c2ln"));
    assert_ptr_equal(jwt.text.data, token);
    assert_true(yyjson_equals_str(yyjson_obj_get(jwt.claims, "iss"), "b"));
    arena_free(arena);
}

static void test_headers_that_are_refused(void **state)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        "{\"alg\":\"none\"}",
        "{\"alg\":\"NONE\"}",
        "{\"alg\":\"\"}",
        "{\"alg\":null}",
        "{\"alg\":\"rs256\"}",
        "{\"alg\":\"PS256\"}",
        "{\"alg\":\"RS256\\u0000\"}",
        "{\"alg\":\"RS256\",\"crit\":[]}",
        "{\"alg\":\"RS256\",\"crit\":null}",
        "{\"alg\":\"RS256\",\"alg\":\"RS256\"}",
        "{\"alg\":\"RS256\",\"kid\":7}",
        "{\"alg\":\"RS256\",\"kid\":\"\"}",
        "{\"alg\":\"RS256\",\"typ\":\"JOSE\"}",
        "{\"alg\":\"RS256\",\"typ\":1}",
        "{\"alg\":\"RS256\"}x",
        "\"RS256\"",
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jwt jwt;
        struct error err = {0};
        if (jwt_parse(arena, slice_of(token_of(arena, rows[i], "{}")), &jwt, &err) == 0)
            fail_msg("%s", rows[i]);
        assert_int_equal(err.code, ERROR_UNAUTHORIZED);
    }
    arena_free(arena);
}

static void test_claims(void **state)
{
    static const char *const audiences[] = {"us", "also us", NULL};
    const struct jwt_rules rules = {audiences, 10};
    static const struct {
        const char *claims;
        bool good;
    } rows[] = {
        {"{\"aud\":\"us\",\"exp\":1001}", true},
        {"{\"aud\":[\"x\",\"also us\"],\"exp\":2000}", true},
        {"{\"aud\":\"us\",\"exp\":991}", true},
        {"{\"aud\":\"us\",\"exp\":990}", false},
        {"{\"aud\":\"us\",\"exp\":1001.9,\"nbf\":1010,\"iat\":1010}", true},
        {"{\"aud\":\"us\",\"exp\":1001,\"nbf\":1011}", false},
        {"{\"aud\":\"us\",\"exp\":1001,\"iat\":1011}", false},
        {"{\"aud\":\"us\",\"exp\":\"1001\"}", false},
        {"{\"aud\":\"us\",\"exp\":true}", false},
        {"{\"aud\":\"us\",\"exp\":-5}", false},
        {"{\"aud\":\"us\",\"exp\":1e300}", false},
        {"{\"aud\":\"us\"}", false},
        {"{\"exp\":1001}", false},
        {"{\"aud\":[],\"exp\":1001}", false},
        {"{\"aud\":[[\"us\"]],\"exp\":1001}", false},
        {"{\"aud\":{\"us\":\"us\"},\"exp\":1001}", false},
        {"{\"aud\":\"US\",\"exp\":1001}", false},
        {"{\"aud\":\"us \",\"exp\":1001}", false},
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        yyjson_val *claims;
        int64_t expires = 0;
        assert_int_equal(json_parse(arena, slice_of(rows[i].claims), &claims, &err), 0);
        if ((jwt_check_claims(claims, &rules, 1000, &expires, &err) == 0) != rows[i].good)
            fail_msg("%s", rows[i].claims);
        assert_true(!rows[i].good || expires > 0);
    }
    arena_free(arena);
}

static void test_claim_by_name_or_pointer(void **state)
{
    struct arena *arena = arena_new();
    struct error err = {0};
    yyjson_val *claims;
    const char *text = "{\"https://x/role\":\"a\",\"realm\":{\"roles\":[\"b\"]}}";
    assert_int_equal(json_parse(arena, slice_of(text), &claims, &err), 0);
    assert_true(yyjson_equals_str(jwt_claim(claims, "https://x/role"), "a"));
    assert_true(yyjson_equals_str(jwt_claim(claims, "/realm/roles/0"), "b"));
    assert_null(jwt_claim(claims, "/realm/x"));
    assert_null(jwt_claim(claims, "realm/roles"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_headers_that_are_refused),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_claim_by_name_or_pointer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
