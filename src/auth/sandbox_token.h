/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tokens that are bound to one sandbox: for whoever is to work in it and nowhere else, an agent for
 * example. Such a token is one for the API (auth/token.h) that names a sandbox by its id. It opens
 * the routes that stay inside that sandbox (ROUTE_INSIDE), with the scopes that it was given, read
 * or write and never more.
 *
 * It lives until it expires, until the key that made it is revoked or expires, until the sandbox's
 * tokens are revoked, or until the sandbox is gone: a later one of the same name has another id.
 * Nothing of a token is stored. What is stored is a number for each sandbox whose tokens were
 * revoked: tokens that say another one are worth nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "auth/auth.h"
#include "base/arena.h"

/* The generation whose tokens count. */
int64_t auth_token_generation(const struct auth *auth, const char *sandbox_id);

struct sandbox_token_request {
    const char *sandbox_id;
    const char *workspace;
    unsigned scopes;
    int64_t lifetime_s;
};

/*
 * Makes one, in the arena; *ret_expires_ms is when it ends, which is never later than what `by`
 * shows. FORBIDDEN for scopes that `by` does not have itself, INVALID_ARGUMENT for others than read
 * and write.
 */
int auth_sandbox_token(const struct auth *auth, struct arena *arena, const struct principal *by,
                       const struct sandbox_token_request *request, const char **ret_token,
                       int64_t *ret_expires_ms, struct error *err);

/*
 * When it returns, no token that was made for the sandbox before opens anything. Waits for the
 * store. exists: whether there is a sandbox of that id; those that are gone are forgotten here.
 */
int auth_sandbox_tokens_revoke(struct auth *auth, const char *sandbox_id,
                               bool (*exists)(void *ctx, const char *sandbox_id), void *ctx,
                               struct error *err);
