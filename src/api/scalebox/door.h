/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The inside of a sandbox, for Scalebox's clients. They send no name of the sandbox with most
 * calls, but always the token that they were given with it; so the token says which it is for:
 * "ID:TOKEN", TOKEN as in auth/box_token.h.
 *
 * They work as root, unless they say otherwise.
 */

#include "api/call.h"
#include "api/connect/box.h"

/* The one that the caller is given, in the arena. */
const char *scalebox_token(struct arena *arena, const struct api_call *call,
                           const char *sandbox_id);

/* Whether the request shows such a token: then it is for the inside of a sandbox, if its path is
 * one that the API has, too. */
bool scalebox_visits(const struct http_exchange *x);

/*
 * The sandbox that the token is for, ready to be worked in. UNAUTHORIZED, TOO_MANY_ATTEMPTS,
 * SANDBOX_NOT_FOUND; UNAVAILABLE when it is paused.
 */
int scalebox_box(struct http_exchange *x, const struct api *api, struct connect_box *ret_box,
                 struct error *err);

/* The same where an address may be signed instead: ?signature=, ?signature_expiration= and
 * ?username=, for this path and operation ("read", "write"). */
int scalebox_box_signed(struct http_exchange *x, const struct api *api, const char *path,
                        const char *operation, struct connect_box *ret_box, struct error *err);
