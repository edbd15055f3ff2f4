/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Signed text: the compact form of RFC 7515 with HS256, and nothing else of it. A text is looked
 * into only after its signature was found right, so that whoever does not have the secret reaches
 * no parser but that of base64url.
 */

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* header.payload.signature, in the arena. */
const char *jws_sign(struct arena *arena, struct slice secret, struct slice payload);

/* The payload of a text that was signed with the secret. UNAUTHORIZED for anything else: more than
 * TOKEN_MAX bytes, not three parts, not base64url (RFC 4648 §5, no padding, no stray bits), a wrong
 * signature, a header that says anything but {"alg":"HS256"} and perhaps "typ":"JWT". */
int jws_open(struct arena *arena, struct slice secret, struct slice token,
             struct slice *ret_payload, struct error *err);

/* The parts of it, for tests too. jws_sign_text() signs "header.payload" as it stands. */
const char *jws_sign_text(struct arena *arena, struct slice secret, const char *text);
struct slice base64url_encode(struct arena *arena, struct slice bytes);
bool base64url_decode(struct arena *arena, struct slice text, struct slice *ret_bytes);
