/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The keys of somebody who issues tokens: a JSON Web Key Set (RFC 7517), and checking signatures
 * with them. A key is for one algorithm, which follows from what kind of key it is and never from
 * what a token says: no public key can be taken for a secret.
 *
 *     RSA, 2048 to 4096 bits   RS256
 *     EC, P-256                ES256
 *     OKP, Ed25519             EdDSA
 *     oct, 32 bytes and more   HS256
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"

enum jwt_algorithm { JWT_HS256, JWT_RS256, JWT_ES256, JWT_EDDSA, JWT_ALGORITHM_COUNT };

/* "RS256"; false: it is none of the four. */
bool jwt_algorithm_parse(const char *name, enum jwt_algorithm *ret_algorithm);
const char *jwt_algorithm_name(enum jwt_algorithm algorithm);

struct jwk;
struct jwks;

/*
 * Reads a set of at most JWKS_MAX bytes and JWKS_KEYS_MAX keys. Keys of other kinds, for other
 * algorithms and for other uses than checking signatures are left out, as RFC 7517 §5 asks for; one
 * of ours that is broken is INVALID_ARGUMENT. secrets: whether keys for HS256 count. Private parts
 * are not read.
 */
int jwks_parse(struct slice text, bool secrets, struct jwks **ret_set, struct error *err);
void jwks_free(struct jwks *set); /* NULL is fine */
size_t jwks_count(const struct jwks *set);
bool jwks_equal(const struct jwks *a, const struct jwks *b);

/* The key of that id (NULL: the token names none, and then it has to be the only one) for that
 * algorithm; NULL: there is none. */
const struct jwk *jwks_find(const struct jwks *set, const char *id, enum jwt_algorithm algorithm);

/* Whether the signature over text is by that key. */
bool jwk_verifies(const struct jwk *key, struct slice text, struct slice signature);
