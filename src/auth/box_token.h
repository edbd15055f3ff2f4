/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tokens that open one sandbox from inside a client library, without an API key: E2B's and
 * Scalebox's clients are given one when they make a sandbox, and show it with every call into it.
 *
 * A token is derived from the server's secret and the sandbox's id, so there is nothing to store;
 * it lives exactly as long as the sandbox, and a clone has another one. Revoking the tokens that
 * are bound to the sandbox (auth/sandbox_token.h) makes all of these worthless, too.
 *
 * Whose key or token has an end is given one that ends with it; who shows a JWT of somebody else's,
 * or a key that was made with one, is given one that ends within a day as well, and with the trust
 * in its issuer: both are written behind the digits, and signed with them. An address that was
 * signed with such a token does not tell its end, so those that were handed out are remembered,
 * BOX_GRANTS_MAX of each of BOX_GRANTED_MAX sandboxes, by this process alone: after a restart such
 * an address is refused until the token was handed out or shown again.
 */

#include <stdbool.h>

#include "auth/auth.h"

/* Hexadecimal digits: of the token, of its end in Unix seconds, and of who has issued the JWT. */
enum { BOX_TOKEN_LEN = 64, BOX_TOKEN_END_LEN = 10 };
enum { BOX_TOKEN_SIZE = BOX_TOKEN_LEN + BOX_TOKEN_END_LEN + ISSUER_TAG_LEN + 1 };

/* What it opens. */
enum box_door {
    BOX_INSIDE,  /* files and processes */
    BOX_TRAFFIC, /* ports */
};

/* For `by`, whose it is to give on; NULL: the sandbox's own, without an end. */
void auth_box_token(struct auth *auth, enum box_door door, const char *sandbox_id,
                    const struct principal *by, char out[BOX_TOKEN_SIZE]);

/* Who knows which sandboxes there are: what is remembered of others makes room first. */
void auth_set_sandboxes(struct auth *auth, bool (*has)(void *ctx, const char *sandbox_id),
                        void *ctx);

/* UNAUTHORIZED unless the token (NULL: none) is the sandbox's; wrong ones are counted as wrong keys
 * are, TOO_MANY_ATTEMPTS. */
int auth_box_check(struct auth *auth, enum box_door door, const char *sandbox_id, const char *token,
                   const char *peer, struct error *err);

/* Whether it is one that the sandbox's own secret has made, if perhaps one that has ended. Asks for
 * nothing and counts nothing: for those who pass things on (auth/recognize.h). */
bool auth_box_is_token(const struct auth *auth, enum box_door door, const char *sandbox_id,
                       const char *token);

/* Whether `signature` is "v1_" and the unpadded base64 of the SHA-256 of "<text>:<token>", or (with
 * an expiry) of "<text>:<token>:<expires>": how E2B's clients sign addresses. */
bool auth_box_signed(const struct auth *auth, const char *sandbox_id, const char *text,
                     const char *expires, const char *signature);
/* Whether it looks like one: "v1_" and 43 characters. */
enum { AUTH_SIGNATURE_PREFIX = 3 };
bool auth_signature_has_form(const char *signature);
/* Whether what comes after the "v1_" of one that has the form begins so, in constant time. */
bool auth_signature_begins(const char *signature, const char *beginning, size_t len);
/* Whether the address may have a signature looked for: TOO_MANY_ATTEMPTS after too many wrong ones.
 */
int auth_box_may_try(const struct auth *auth, const char *peer, struct error *err);
/* A signature that is nobody's: counts it, and returns UNAUTHORIZED or TOO_MANY_ATTEMPTS. */
int auth_box_refuse(struct auth *auth, const char *peer, const char *what, struct error *err);

/* --- keys as E2B's clients want them to look --- */

enum { E2B_KEY_SIZE = 2 * AUTH_KEY_SIZE + 8 };
/* "e2b_" and the key in hexadecimal: the same key, spelt so that clients that check the form of a
 * key before they send it (^e2b_[0-9a-f]+$) take it. */
void auth_key_to_e2b(const char *key, char out[E2B_KEY_SIZE]);
/* The key in that form; false: it is none. */
bool auth_key_from_e2b(const char *text, char out[AUTH_KEY_SIZE]);
