/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Key sets, and signatures by OpenSSL. Every kind of key is a row: how it is read and how it checks
 * a signature. What comes from a URL is a stranger's bytes until it is a key.
 */

#include "auth/jwks.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "auth/jws.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "json/json.h"

enum {
    RSA_BITS_MIN = 2048,
    RSA_BITS_MAX = 4096, /* the loop waits for a check: a larger one takes too long */
    RSA_EXPONENT_MAX = 8,
    P256_LEN = 32,
    ED25519_LEN = 32,
    SECRET_MIN = 32,
    SECRET_MAX = 1024,
};

struct jwk {
    char *id; /* NULL: it has none */
    enum jwt_algorithm algorithm;
    EVP_PKEY *key; /* NULL: a secret */
    unsigned char *secret;
    size_t secret_len;
};

struct jwks {
    size_t count;
    unsigned char digest[SHA256_DIGEST_LENGTH]; /* of the text it came from */
    struct jwk keys[JWKS_KEYS_MAX];
};

/* The members of a key that mean something here. */
struct members {
    const char *kty, *kid, *alg, *use, *crv;
    struct slice n, e, x, y, k;
};

/* --- reading --- */

static int broken(const char *what, struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "a key set: %s", what);
}

static int make_key(const char *type, OSSL_PARAM_BLD *build, EVP_PKEY **ret_key)
{
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    int made = params != NULL && context != NULL && EVP_PKEY_fromdata_init(context) == 1 &&
               EVP_PKEY_fromdata(context, ret_key, EVP_PKEY_PUBLIC_KEY, params) == 1;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    return made ? 0 : -1;
}

static bool is_sound(EVP_PKEY *key)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    bool sound = context != NULL && EVP_PKEY_public_check(context) == 1;
    EVP_PKEY_CTX_free(context);
    return sound;
}

static int read_rsa(const struct members *m, struct jwk *key, struct error *err)
{
    if (m->n.len == 0 || m->n.len > RSA_BITS_MAX / 8 + 1 || m->e.len == 0 ||
        m->e.len > RSA_EXPONENT_MAX)
        return broken("an RSA key has no n and e, or too large ones", err);
    BIGNUM *n = BN_bin2bn((const unsigned char *)m->n.data, (int)m->n.len, NULL);
    BIGNUM *e = BN_bin2bn((const unsigned char *)m->e.data, (int)m->e.len, NULL);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    int bits = n == NULL ? 0 : BN_num_bits(n);
    bool fits = bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX && BN_is_odd(n) && e != NULL &&
                BN_is_odd(e) && !BN_is_one(e);
    bool made = fits && build != NULL &&
                OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
                OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1 &&
                make_key("RSA", build, &key->key) == 0;
    OSSL_PARAM_BLD_free(build);
    BN_free(n);
    BN_free(e);
    return made ? 0 : broken("an RSA key is not one of 2048 to 4096 bits", err);
}

static int read_ec(const struct members *m, struct jwk *key, struct error *err)
{
    unsigned char point[1 + 2 * P256_LEN] = {POINT_CONVERSION_UNCOMPRESSED};
    if (m->x.len != P256_LEN || m->y.len != P256_LEN)
        return broken("x and y of an EC key are not of 32 bytes", err);
    memcpy(point + 1, m->x.data, P256_LEN);
    memcpy(point + 1 + P256_LEN, m->y.data, P256_LEN);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    bool made =
        build != NULL &&
        OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)) ==
            1 &&
        make_key("EC", build, &key->key) == 0 && is_sound(key->key);
    OSSL_PARAM_BLD_free(build);
    return made ? 0 : broken("an EC key is no point of P-256", err);
}

static int read_okp(const struct members *m, struct jwk *key, struct error *err)
{
    if (m->x.len == ED25519_LEN)
        key->key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                               (const unsigned char *)m->x.data, m->x.len);
    return key->key != NULL ? 0 : broken("x of an Ed25519 key is not of 32 bytes", err);
}

static int read_oct(const struct members *m, struct jwk *key, struct error *err)
{
    if (m->k.len < SECRET_MIN || m->k.len > SECRET_MAX)
        return broken("a secret (oct) is not of 32 to 1024 bytes", err);
    key->secret = malloc(m->k.len);
    if (key->secret == NULL)
        return error_sys(err, "keeping a key set");
    memcpy(key->secret, m->k.data, m->k.len);
    key->secret_len = m->k.len;
    return 0;
}

/* --- checking --- */

static bool check_digest(EVP_PKEY *key, const EVP_MD *md, struct slice text,
                         const unsigned char *signature, size_t len)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool right =
        context != NULL && EVP_DigestVerifyInit(context, NULL, md, NULL, key) == 1 &&
        EVP_DigestVerify(context, signature, len, (const unsigned char *)text.data, text.len) == 1;
    EVP_MD_CTX_free(context);
    return right;
}

static bool check_rsa(const struct jwk *key, struct slice text, struct slice signature)
{
    return signature.len == (size_t)EVP_PKEY_get_size(key->key) &&
           check_digest(key->key, EVP_sha256(), text, (const unsigned char *)signature.data,
                        signature.len);
}

/* A JWT has r and s one after the other, OpenSSL wants them in DER. */
static bool check_ec(const struct jwk *key, struct slice text, struct slice signature)
{
    const unsigned char *bytes = (const unsigned char *)signature.data;
    if (signature.len != 2 * P256_LEN)
        return false;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, P256_LEN, NULL);
    BIGNUM *s = BN_bin2bn(bytes + P256_LEN, P256_LEN, NULL);
    if (pair == NULL || r == NULL || s == NULL || ECDSA_SIG_set0(pair, r, s) != 1)
        abort(); /* out of memory */
    unsigned char *der = NULL;
    int len = i2d_ECDSA_SIG(pair, &der);
    bool right = len > 0 && check_digest(key->key, EVP_sha256(), text, der, (size_t)len);
    OPENSSL_free(der);
    ECDSA_SIG_free(pair);
    return right;
}

static bool check_okp(const struct jwk *key, struct slice text, struct slice signature)
{
    return check_digest(key->key, NULL, text, (const unsigned char *)signature.data, signature.len);
}

static bool check_oct(const struct jwk *key, struct slice text, struct slice signature)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    return HMAC(EVP_sha256(), key->secret, (int)key->secret_len, (const unsigned char *)text.data,
                text.len, mac, &len) != NULL &&
           len == signature.len && CRYPTO_memcmp(mac, signature.data, len) == 0;
}

/* --- kinds of keys --- */

static const struct kind {
    const char *algorithm;
    const char *type;
    const char *curve; /* NULL: it has none */
    int (*read)(const struct members *members, struct jwk *key, struct error *err);
    bool (*check)(const struct jwk *key, struct slice text, struct slice signature);
} kinds[JWT_ALGORITHM_COUNT] = {
    [JWT_HS256] = {"HS256", "oct", NULL, read_oct, check_oct},
    [JWT_RS256] = {"RS256", "RSA", NULL, read_rsa, check_rsa},
    [JWT_ES256] = {"ES256", "EC", "P-256", read_ec, check_ec},
    [JWT_EDDSA] = {"EdDSA", "OKP", "Ed25519", read_okp, check_okp},
};

bool jwt_algorithm_parse(const char *name, enum jwt_algorithm *ret_algorithm)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].algorithm, name) == 0) {
            *ret_algorithm = (enum jwt_algorithm)i;
            return true;
        }
    return false;
}

const char *jwt_algorithm_name(enum jwt_algorithm algorithm)
{
    return kinds[algorithm].algorithm;
}

bool jwk_verifies(const struct jwk *key, struct slice text, struct slice signature)
{
    return kinds[key->algorithm].check(key, text, signature);
}

/* --- a set --- */

static const char *text_of(yyjson_val *object, const char *name)
{
    yyjson_val *value = yyjson_obj_get(object, name);
    bool plain = yyjson_is_str(value) && strlen(yyjson_get_str(value)) == yyjson_get_len(value);
    return plain ? yyjson_get_str(value) : NULL;
}

/* What is not base64url is as good as not there. */
static struct slice bytes_of(struct arena *arena, yyjson_val *object, const char *name)
{
    yyjson_val *value = yyjson_obj_get(object, name);
    struct slice bytes = {NULL, 0};
    if (!yyjson_is_str(value) ||
        !base64url_decode(arena, (struct slice){yyjson_get_str(value), yyjson_get_len(value)},
                          &bytes))
        return (struct slice){NULL, 0};
    return bytes;
}

static struct members members_of(struct arena *arena, yyjson_val *object)
{
    return (struct members){
        .kty = text_of(object, "kty"),
        .kid = text_of(object, "kid"),
        .alg = text_of(object, "alg"),
        .use = text_of(object, "use"),
        .crv = text_of(object, "crv"),
        .n = bytes_of(arena, object, "n"),
        .e = bytes_of(arena, object, "e"),
        .x = bytes_of(arena, object, "x"),
        .y = bytes_of(arena, object, "y"),
        .k = bytes_of(arena, object, "k"),
    };
}

static bool may_verify(yyjson_val *object, const struct members *m)
{
    yyjson_val *operations = yyjson_obj_get(object, "key_ops"), *item;
    size_t i, count;
    if (m->use != NULL && strcmp(m->use, "sig") != 0)
        return false;
    if (operations == NULL)
        return true;
    yyjson_arr_foreach(operations, i, count, item)
    {
        if (yyjson_equals_str(item, "verify"))
            return true;
    }
    return false;
}

static const struct kind *kind_of(const struct members *m)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        bool curve =
            kinds[i].curve == NULL || (m->crv != NULL && strcmp(m->crv, kinds[i].curve) == 0);
        if (m->kty != NULL && strcmp(m->kty, kinds[i].type) == 0 && curve)
            return m->alg == NULL || strcmp(m->alg, kinds[i].algorithm) == 0 ? &kinds[i] : NULL;
    }
    return NULL;
}

static int add_key(struct jwks *set, struct arena *arena, yyjson_val *object, bool secrets,
                   struct error *err)
{
    struct members m = members_of(arena, object);
    const struct kind *kind = kind_of(&m);
    if (!yyjson_is_obj(object))
        return broken("keys holds something that is no object", err);
    if (kind == NULL || !may_verify(object, &m) || (kind == &kinds[JWT_HS256] && !secrets))
        return 0;
    if (m.kid != NULL && strlen(m.kid) > JWT_KID_MAX)
        return broken("a kid is too long", err);
    struct jwk *key = &set->keys[set->count];
    key->algorithm = (enum jwt_algorithm)(kind - kinds);
    if (jwks_find(set, m.kid, key->algorithm) != NULL && m.kid != NULL)
        return broken("two keys have the same kid and algorithm", err);
    set->count++; /* what it holds is freed with the set from here on */
    if (m.kid != NULL && (key->id = strdup(m.kid)) == NULL)
        return error_sys(err, "keeping a key set");
    return kind->read(&m, key, err);
}

static int add_keys(struct jwks *set, struct arena *arena, struct slice text, bool secrets,
                    struct error *err)
{
    yyjson_val *root, *item;
    size_t i, count;
    if (text.len > JWKS_MAX)
        return broken("it is too large", err);
    if (json_parse(arena, text, &root, err) < 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "a key set: it is no JSON");
    yyjson_val *keys = yyjson_obj_get(root, "keys");
    if (!yyjson_is_arr(keys))
        return broken("it has no list named keys", err);
    if (yyjson_arr_size(keys) > JWKS_KEYS_MAX)
        return broken("it has more keys than fit", err);
    yyjson_arr_foreach(keys, i, count, item)
    {
        if (add_key(set, arena, item, secrets, err) < 0)
            return -1;
    }
    if (set->count == 0)
        return broken("it has no key for RS256, ES256, EdDSA (or, from a file, HS256)", err);
    return 0;
}

int jwks_parse(struct slice text, bool secrets, struct jwks **ret_set, struct error *err)
{
    struct jwks *set = calloc(1, sizeof(*set));
    if (set == NULL)
        return error_sys(err, "keeping a key set");
    struct arena *arena = arena_new();
    SHA256((const unsigned char *)text.data, text.len, set->digest);
    int rc = add_keys(set, arena, text, secrets, err);
    arena_free(arena);
    if (rc < 0) {
        jwks_free(set);
        return -1;
    }
    *ret_set = set;
    return 0;
}

void jwks_free(struct jwks *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->keys[i].id);
        EVP_PKEY_free(set->keys[i].key);
        if (set->keys[i].secret != NULL)
            OPENSSL_cleanse(set->keys[i].secret, set->keys[i].secret_len);
        free(set->keys[i].secret);
    }
    free(set);
}

size_t jwks_count(const struct jwks *set)
{
    return set->count;
}

bool jwks_equal(const struct jwks *a, const struct jwks *b)
{
    return memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

const struct jwk *jwks_find(const struct jwks *set, const char *id, enum jwt_algorithm algorithm)
{
    const struct jwk *found = NULL;
    for (size_t i = 0; i < set->count; i++) {
        const struct jwk *key = &set->keys[i];
        if (key->algorithm != algorithm ||
            (id != NULL && (key->id == NULL || strcmp(key->id, id) != 0)))
            continue;
        if (found != NULL) /* which of them is meant is not ours to guess */
            return NULL;
        found = key;
    }
    return found;
}
