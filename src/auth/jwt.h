/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A JWT (RFC 7519) of somebody else's, taken apart: a JWS in compact form whose header and payload
 * are JSON objects. Nothing of it is to be believed before jwk_verifies() says so, but who issued
 * it and by which key has to be read to know whom to ask.
 */

#include "auth/jwks.h"
#include "base/arena.h"
#include "json/json.h"

struct jwt {
    enum jwt_algorithm algorithm;
    const char *key_id; /* NULL: it names none */
    struct slice text;  /* what is signed, a part of the token */
    struct slice signature;
    yyjson_val *claims; /* an object */
};

/*
 * UNAUTHORIZED, with what is wrong, for anything but: at most JWT_MAX bytes; three parts of strict
 * base64url; no member twice in a JSON object; an alg that is one of the four (so never "none");
 * no crit, since there is nothing here that could be critical; a typ, if there is one, of JWT or
 * at+jwt. Everything is in the arena, or in the token.
 */
int jwt_parse(struct arena *arena, struct slice token, struct jwt *ret_jwt, struct error *err);

/* What an issuer is asked to have said. */
struct jwt_rules {
    const char *const *audiences; /* one of these; ended by NULL */
    int64_t leeway_s;             /* how far clocks may be apart */
};

/* Whether one of the audiences is its own. */
bool jwt_is_for(yyjson_val *claims, const struct jwt_rules *rules);

/*
 * Whether the claims count now: an aud that has one of the audiences, an exp that is still to come,
 * neither nbf nor iat in the future. UNAUTHORIZED says what is wrong.
 */
int jwt_check_claims(yyjson_val *claims, const struct jwt_rules *rules, int64_t now_s,
                     int64_t *ret_expires_s, struct error *err);

/* A claim by its name, or by a JSON pointer (RFC 6901) when that begins with a slash; NULL: it is
 * not there. */
yyjson_val *jwt_claim(yyjson_val *claims, const char *name);
