/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tokens: JWTs (RFC 7519) that this server signs for itself. A token says for what it is (its
 * audience), on whose behalf (its subject) and until when; it cannot be changed by who holds it.
 *
 * TOKEN_FOR_API opens the API: its subject is the id of a key, and auth_check() takes it for as
 * long as that key lives. Any other audience means something only to who issued it: whoever hands
 * out addresses that work without a key (a preview, a download) names them by an audience such as
 * "preview/<sandbox id>/<name>" and verifies with the same.
 */

#include "auth/auth.h"
#include "base/arena.h"

#define TOKEN_FOR_API "api"

struct token_claims {
    const char *id; /* jti: different for each */
    const char *audience;
    const char *subject;
    const char *workspace;
    unsigned scopes;
    int64_t issued_s, expires_s;
    const char *sandbox; /* the id of the one sandbox that it is bound to; NULL: to none */
    int64_t generation;  /* of that sandbox's tokens: auth/sandbox_token.h */
    const char *issuer;  /* tag of the issuer whose JWT its maker showed; NULL or "": none */
};

/* Issues a token; `claims` has everything but id and issued_s, which are filled in. */
const char *auth_token_issue(const struct auth *auth, struct arena *arena,
                             struct token_claims *claims);

/* What a token says; in the arena. UNAUTHORIZED unless it is ours, for this audience, in its time,
 * and of a maker whose issuer is trusted still. */
int auth_token_verify(const struct auth *auth, const char *token, const char *audience,
                      struct arena *arena, struct token_claims *ret_claims, struct error *err);
