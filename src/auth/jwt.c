/* SPDX-License-Identifier: Apache-2.0 */

/* Taking tokens apart, and the claims that are about the token itself. */

#include "auth/jwt.h"

#include <string.h>
#include <strings.h>

#include "auth/jws.h"
#include "base/cleanup.h"
#include "base/limits.h"

#define JWT_TIME_MAX 253402300799.0 /* 9999-12-31T23:59:59Z */

static int refuse(const char *why, struct error *err)
{
    return error_set(err, ERROR_UNAUTHORIZED, "the token is not valid: %s", why);
}

/* --- its parts --- */

struct parts {
    struct slice head, body, tail;
};

static bool split(struct slice token, struct parts *ret_parts)
{
    const char *end = token.data + token.len;
    const char *first = memchr(token.data, '.', token.len);
    const char *second = first == NULL ? NULL : memchr(first + 1, '.', (size_t)(end - first - 1));
    if (second == NULL)
        return false;
    ret_parts->head = (struct slice){token.data, (size_t)(first - token.data)};
    ret_parts->body = (struct slice){first + 1, (size_t)(second - first - 1)};
    ret_parts->tail = (struct slice){second + 1, (size_t)(end - second - 1)};
    return true;
}

static yyjson_val *object_of(struct arena *arena, struct slice part)
{
    struct slice text;
    yyjson_val *root;
    if (!base64url_decode(arena, part, &text) || json_parse(arena, text, &root, NULL) < 0)
        return NULL;
    return yyjson_is_obj(root) ? root : NULL;
}

/* NULL: it is not there; "" when it is no text. */
static const char *text_of(yyjson_val *object, const char *name)
{
    yyjson_val *value = yyjson_obj_get(object, name);
    if (value == NULL)
        return NULL;
    bool plain = yyjson_is_str(value) && strlen(yyjson_get_str(value)) == yyjson_get_len(value);
    return plain ? yyjson_get_str(value) : "";
}

static bool is_known_type(const char *type)
{
    static const char *const known[] = {"JWT", "at+jwt", "application/jwt", "application/at+jwt"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcasecmp(known[i], type) == 0)
            return true;
    return false;
}

static int read_header(yyjson_val *header, struct jwt *jwt, struct error *err)
{
    const char *algorithm = text_of(header, "alg"), *type = text_of(header, "typ");
    jwt->key_id = text_of(header, "kid");
    if (yyjson_obj_get(header, "crit") != NULL)
        return refuse("its header has crit, and nothing in it is known here", err);
    if (algorithm == NULL || !jwt_algorithm_parse(algorithm, &jwt->algorithm))
        return refuse("its alg is none of RS256, ES256, EdDSA and HS256", err);
    if (type != NULL && !is_known_type(type))
        return refuse("its typ says that it is for something else", err);
    if (jwt->key_id != NULL && (jwt->key_id[0] == '\0' || strlen(jwt->key_id) > JWT_KID_MAX))
        return refuse("its kid is no text, or too long", err);
    return 0;
}

int jwt_parse(struct arena *arena, struct slice token, struct jwt *ret_jwt, struct error *err)
{
    struct parts parts;
    struct jwt jwt = {0};
    if (token.len > JWT_MAX)
        return refuse("it is too long", err);
    if (!split(token, &parts))
        return refuse("it does not have three parts", err);
    yyjson_val *header = object_of(arena, parts.head);
    if (header == NULL)
        return refuse("its header is no JSON object in base64url", err);
    if (read_header(header, &jwt, err) < 0)
        return -1;
    jwt.claims = object_of(arena, parts.body);
    if (jwt.claims == NULL)
        return refuse("its claims are no JSON object in base64url", err);
    if (parts.tail.len == 0 || !base64url_decode(arena, parts.tail, &jwt.signature))
        return refuse("its signature is not base64url", err);
    jwt.text = (struct slice){token.data, (size_t)(parts.tail.data - 1 - token.data)};
    *ret_jwt = jwt;
    return 0;
}

/* --- the claims --- */

yyjson_val *jwt_claim(yyjson_val *claims, const char *name)
{
    return name[0] == '/' ? yyjson_ptr_get(claims, name) : yyjson_obj_get(claims, name);
}

static bool has_audience(yyjson_val *value, const char *const *audiences)
{
    yyjson_val *item;
    size_t i, count;
    for (const char *const *wanted = audiences; *wanted != NULL; wanted++) {
        if (yyjson_equals_str(value, *wanted))
            return true;
        yyjson_arr_foreach(value, i, count, item)
        {
            if (yyjson_equals_str(item, *wanted))
                return true;
        }
    }
    return false;
}

bool jwt_is_for(yyjson_val *claims, const struct jwt_rules *rules)
{
    return has_audience(yyjson_obj_get(claims, "aud"), rules->audiences);
}

/* A NumericDate may have a fraction. False: it is there, and no time. */
static bool read_time(yyjson_val *claims, const char *name, int64_t *ret_seconds)
{
    yyjson_val *value = yyjson_obj_get(claims, name);
    if (value == NULL)
        return true;
    double seconds = yyjson_is_num(value) ? yyjson_get_num(value) : -1;
    if (!(seconds >= 0 && seconds <= JWT_TIME_MAX))
        return false;
    *ret_seconds = (int64_t)seconds;
    return true;
}

int jwt_check_claims(yyjson_val *claims, const struct jwt_rules *rules, int64_t now_s,
                     int64_t *ret_expires_s, struct error *err)
{
    int64_t expires = -1, from = 0, issued = 0;
    if (!jwt_is_for(claims, rules))
        return refuse("its aud is somebody else", err);
    if (!read_time(claims, "exp", &expires) || !read_time(claims, "nbf", &from) ||
        !read_time(claims, "iat", &issued))
        return refuse("exp, nbf or iat is no time", err);
    if (expires < 0)
        return refuse("it has no exp", err);
    if (now_s >= expires + rules->leeway_s)
        return refuse("it has expired: get another one", err);
    if (now_s + rules->leeway_s < from)
        return refuse("its nbf is still to come", err);
    if (now_s + rules->leeway_s < issued)
        return refuse("its iat is still to come", err);
    *ret_expires_s = expires;
    return 0;
}
