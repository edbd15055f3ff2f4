/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HS256 in compact form. The algorithm is not taken from the text: it is HS256 whatever the header
 * says, and a header that says something else is refused afterwards.
 */

#include "auth/jws.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "json/json.h"

enum { MAC_LEN = 32 };

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

struct slice base64url_encode(struct arena *arena, struct slice bytes)
{
    char *out = arena_alloc(arena, (bytes.len + 2) / 3 * 4 + 1);
    size_t at = 0;
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bits = (bits & 0xff) << 8 | (unsigned char)bytes.data[i];
        for (held += 8; held >= 6; held -= 6)
            out[at++] = alphabet[bits >> (held - 6) & 63];
    }
    if (held > 0)
        out[at++] = alphabet[bits << (6 - held) & 63];
    return (struct slice){out, at};
}

bool base64url_decode(struct arena *arena, struct slice text, struct slice *ret_bytes)
{
    char *out = arena_alloc(arena, text.len / 4 * 3 + 3);
    size_t at = 0;
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *sign = text.data[i] == '\0' ? NULL : strchr(alphabet, text.data[i]);
        if (sign == NULL)
            return false;
        bits = (bits & 0xff) << 6 | (unsigned)(sign - alphabet);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[at++] = (char)(bits >> held & 0xff);
        }
    }
    /* What is left over of the last sign has to be zero, and less than a sign. */
    if (held >= 6 || (bits & ((1U << held) - 1)) != 0)
        return false;
    *ret_bytes = (struct slice){out, at};
    return true;
}

static bool sign(struct slice secret, struct slice text, unsigned char mac[MAC_LEN])
{
    unsigned len = 0;
    return HMAC(EVP_sha256(), secret.data, (int)secret.len, (const unsigned char *)text.data,
                text.len, mac, &len) != NULL &&
           len == MAC_LEN;
}

const char *jws_sign_text(struct arena *arena, struct slice secret, const char *text)
{
    unsigned char mac[MAC_LEN];
    if (!sign(secret, slice_of(text), mac))
        abort(); /* out of memory */
    struct slice tail = base64url_encode(arena, (struct slice){(char *)mac, sizeof(mac)});
    return arena_printf(arena, "%s.%.*s", text, (int)tail.len, tail.data);
}

const char *jws_sign(struct arena *arena, struct slice secret, struct slice payload)
{
    static const char header[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    struct slice head = base64url_encode(arena, slice_of(header));
    struct slice body = base64url_encode(arena, payload);
    const char *text =
        arena_printf(arena, "%.*s.%.*s", (int)head.len, head.data, (int)body.len, body.data);
    return jws_sign_text(arena, secret, text);
}

static int refuse(struct error *err)
{
    return error_set(err, ERROR_UNAUTHORIZED, "the token is not one of this server's");
}

static int check_header(struct arena *arena, struct slice text, struct error *err)
{
    struct header {
        const char *alg, *typ;
    } header = {NULL, "JWT"};
    static const struct json_field fields[] = {
        {"alg", JSON_STRING, .required = true, .offset = offsetof(struct header, alg)},
        {"typ", JSON_STRING, .offset = offsetof(struct header, typ)},
    };
    yyjson_val *root;
    if (json_parse(arena, text, &root, NULL) < 0 ||
        json_read(arena, root, "", fields, ARRAY_LEN(fields), &header, NULL) < 0 ||
        strcmp(header.alg, "HS256") != 0 || strcmp(header.typ, "JWT") != 0)
        return refuse(err);
    return 0;
}

int jws_open(struct arena *arena, struct slice secret, struct slice token,
             struct slice *ret_payload, struct error *err)
{
    const char *first = token.len > TOKEN_MAX ? NULL : memchr(token.data, '.', token.len);
    const char *end = token.data + token.len;
    const char *second = first == NULL ? NULL : memchr(first + 1, '.', (size_t)(end - first - 1));
    if (second == NULL)
        return refuse(err);
    struct slice head = {token.data, (size_t)(first - token.data)};
    struct slice body = {first + 1, (size_t)(second - first - 1)};
    struct slice tail = {second + 1, (size_t)(end - second - 1)}; /* a third dot is not base64url */

    unsigned char mac[MAC_LEN];
    struct slice shown, header, payload;
    if (!base64url_decode(arena, tail, &shown) || shown.len != MAC_LEN ||
        !sign(secret, (struct slice){token.data, (size_t)(second - token.data)}, mac) ||
        CRYPTO_memcmp(mac, shown.data, MAC_LEN) != 0)
        return refuse(err);
    if (!base64url_decode(arena, head, &header) || !base64url_decode(arena, body, &payload) ||
        check_header(arena, header, err) < 0)
        return refuse(err);
    *ret_payload = payload;
    return 0;
}
