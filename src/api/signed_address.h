/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Addresses of files that somebody with a sandbox's token has signed, for those who have none.
 *
 * Such an address does not say which sandbox it is for: the one whose token fits is found by
 * trying. No index can help (what is signed holds the path, the operation and the user), so trying
 * is made harmless: what cannot be a signature is not tried, one is tried at a time, addresses that
 * were wrong too often by then wait, the loop goes on meanwhile, and a signature that was right
 * once is found at once the next time.
 */

#include "api/api.h"
#include "base/limits.h"
#include "loop/co.h"

struct signed_address {
    const char *text;      /* what is signed, without the token */
    const char *expires;   /* ?signature_expiration=, seconds since 1970; NULL: never */
    const char *signature; /* ?signature= */
    bool token_has_id;     /* what was signed is "text:id:token", and not "text:token" */
};

/* Whether it has not ended. UNAUTHORIZED, INVALID_ARGUMENT. */
int signed_address_check_expiry(const struct signed_address *address, struct error *err);

/* Whether it is that sandbox's. */
bool signed_address_fits(const struct api *api, const struct signed_address *address,
                         struct arena *arena, const char *sandbox_id);

/* The id of the sandbox that it is for, in the exchange's arena. May let others run meanwhile.
 * UNAUTHORIZED, INVALID_ARGUMENT, TOO_MANY_ATTEMPTS, UNAVAILABLE. */
int signed_address_find(struct http_exchange *x, const struct api *api,
                        const struct signed_address *address, const char **ret_id,
                        struct error *err);

/* --- what was right before, and whose turn it is --- */

enum { SIGNED_HINTS = 1024, SIGNED_SEARCHES_MAX = 256 };

/* Where to look first: nothing is believed that is not tried. Zeroed: nothing is known. */
struct signed_hints {
    struct signed_hint {
        char signature[16]; /* its first characters, which are a hash's */
        char id[SANDBOX_ID_LEN + 1];
    } * rows;            /* SIGNED_HINTS of them; NULL: none yet */
    unsigned searches;   /* under way or waiting, SIGNED_SEARCHES_MAX at most */
    struct co_cond turn; /* where they wait for the one that is under way */
};

void signed_hints_release(struct signed_hints *hints);
