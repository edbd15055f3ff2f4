/* SPDX-License-Identifier: Apache-2.0 */

/* The examples of RFC 7515 (A.1, A.2, A.3) and RFC 8037 (A.4), and sets that are not as they should
 * be. */

#include "auth/jwks.h"

#include "auth/jws.h"
#include "fixture.h"

#define PAYLOAD                                                                                    \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl" \
    "fQ"

#define HS_KEY                                                                                     \
    "{\"kty\":\"oct\",\"kid\":\"hs\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-"        \
    "1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow\"}"
#define RS_KEY                                                                                     \
    "{\"kty\":\"RSA\",\"kid\":\"rs\",\"e\":\"AQAB\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJ" \
    "cyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOW"  \
    "vG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2C"  \
    "apHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethF"  \
    "kMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\"}"
#define ES_KEY                                                                                     \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"es\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9" \
    "uPHvRVEU\",\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}"
#define ED_KEY                                                                                     \
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"ed\",\"x\":\"11qYAYKxCrfVS_"                   \
    "7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"
#define SET(keys) "{\"keys\":[" keys "]}"

static const struct {
    const char *kid;
    enum jwt_algorithm algorithm;
    const char *text, *signature;
} examples[] = {
    {"hs", JWT_HS256, "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." PAYLOAD,
     "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"},
    {"rs", JWT_RS256, "eyJhbGciOiJSUzI1NiJ9." PAYLOAD,
     "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_"
     "O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSj"
     "tQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6Ie"
     "YI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"},
    {"es", JWT_ES256, "eyJhbGciOiJFUzI1NiJ9." PAYLOAD,
     "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"},
    {"ed", JWT_EDDSA, "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
     "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"},
};

static struct jwks *set_of(const char *text)
{
    struct jwks *set = NULL;
    struct error err = {0};
    if (jwks_parse(slice_of(text), true, &set, &err) < 0)
        fail_msg("%s", err.message);
    return set;
}

static void test_examples(void **state)
{
    struct arena *arena = arena_new();
    struct jwks *set = set_of(SET(HS_KEY "," RS_KEY "," ES_KEY "," ED_KEY));
    assert_int_equal(jwks_count(set), 4);
    for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
        struct slice signature;
        const struct jwk *key = jwks_find(set, examples[i].kid, examples[i].algorithm);
        assert_non_null(key);
        assert_ptr_equal(key, jwks_find(set, NULL, examples[i].algorithm));
        assert_true(base64url_decode(arena, slice_of(examples[i].signature), &signature));
        assert_true(jwk_verifies(key, slice_of(examples[i].text), signature));
        assert_false(jwk_verifies(key, slice_of("another text"), signature));
        assert_false(jwk_verifies(key, slice_of(examples[i].text), (struct slice){"", 0}));
        struct slice cut = {signature.data, signature.len - 1};
        assert_false(jwk_verifies(key, slice_of(examples[i].text), cut));
        ((char *)signature.data)[7] ^= 1;
        assert_false(jwk_verifies(key, slice_of(examples[i].text), signature));
    }
    jwks_free(set);
    arena_free(arena);
}

/* Which algorithm a key is for follows from the key. */
static void test_kinds_do_not_mix(void **state)
{
    static const char *const kids[] = {"hs", "rs", "es", "ed"};
    struct jwks *set = set_of(SET(HS_KEY "," RS_KEY "," ES_KEY "," ED_KEY));
    for (size_t kid = 0; kid < ARRAY_LEN(kids); kid++)
        for (int algorithm = 0; algorithm < JWT_ALGORITHM_COUNT; algorithm++)
            assert_true((jwks_find(set, kids[kid], (enum jwt_algorithm)algorithm) != NULL) ==
                        (strcmp(examples[algorithm].kid, kids[kid]) == 0));
    assert_null(jwks_find(set, "nobody", JWT_RS256));
    jwks_free(set);

    /* Without an id it has to be clear which is meant. */
    set = set_of(SET(ES_KEY ",{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV"
                            "76e8Tus9uPHvRVEU\",\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
                            "\"}"));
    assert_null(jwks_find(set, NULL, JWT_ES256));
    assert_non_null(jwks_find(set, "es", JWT_ES256));
    jwks_free(set);
}

/* RFC 7517 §5: what is not understood is passed over. */
static void test_left_out(void **state)
{
    static const char *const others[] = {
        "{\"kty\":\"new\"}",
        "{}",
        "{\"kty\":7}",
        "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AA\",\"y\":\"AA\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"AA\"}",
        "{\"kty\":\"RSA\",\"alg\":\"RS512\",\"n\":\"AA\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"alg\":\"HS256\",\"n\":\"AA\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"use\":\"enc\",\"n\":\"AA\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"key_ops\":[\"encrypt\"],\"n\":\"AA\",\"e\":\"AQAB\"}",
    };
    struct arena *arena = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct jwks *set = set_of(arena_printf(arena, "{\"keys\":[%s,%s]}", others[i], ED_KEY));
        assert_int_equal(jwks_count(set), 1);
        jwks_free(set);
    }
    arena_free(arena);
    struct jwks *set = NULL;
    struct error err = {0};
    assert_int_equal(jwks_parse(slice_of(SET(HS_KEY)), false, &set, &err), -1); /* from a URL */
}

static void test_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "[]",
        "{}",
        "{\"keys\":{}}",
        "{\"keys\":[]}",
        "{\"keys\":[1]}",
        "{\"keys\":[],\"keys\":[]}",
        SET(ED_KEY "," ED_KEY), /* the same id twice */
        SET("{\"kty\":\"oct\",\"k\":\"AAAA\"}"),
        SET("{\"kty\":\"oct\"}"),
        SET("{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}"),
        SET("{\"kty\":\"RSA\",\"e\":\"AQAB\"}"),
        SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}"),
        SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"====\"}"),
        /* no point of the curve */
        SET("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
            "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
            "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}"),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jwks *set = NULL;
        struct error err = {0};
        if (jwks_parse(slice_of(rows[i]), true, &set, &err) == 0)
            fail_msg("%s", rows[i]);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
        assert_null(set);
    }
}

static void test_too_large(void **state)
{
    struct error err = {0};
    struct jwks *set = NULL;
    size_t len = JWKS_MAX + 1;
    char *text = malloc(len);
    memset(text, ' ', len);
    assert_int_equal(jwks_parse((struct slice){text, len}, true, &set, &err), -1);
    assert_non_null(strstr(err.message, "too large"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),  cmocka_unit_test(test_kinds_do_not_mix),
        cmocka_unit_test(test_left_out),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
