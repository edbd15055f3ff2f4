/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who else may say who a caller is: issuers of JWTs whom the operator trusts, and what their claims
 * mean here. The configuration is a JSON object (docs/operations.md has the members):
 *
 *     {"issuers": [{"issuer": "https://id.example/", "audience": "cella",
 *                   "jwksUrl": "https://id.example/jwks.json",
 *                   "workspaceClaim": "org", "roleClaim": "roles",
 *                   "roles": {"platform-admin": "admin", "developer": "write"}}]}
 *
 * Keys come with the configuration ("jwks", an object) or from a URL, which is asked when the first
 * token comes, when they are "jwksRefreshSeconds" old (JWKS_FRESH_S), and when a token names a key
 * that is not known: JWKS_BURST times, and then every JWKS_RETRY_S. What cannot be fetched anew
 * stays as it was for "jwksStaleSeconds" (JWKS_STALE_S), and is asked for every JWKS_RETRY_S
 * meanwhile; then the issuer's tokens wait for keys that can be had.
 */

#include "auth/auth.h"
#include "loop/loop.h"

enum { JWKS_FRESH_S = 600, JWKS_STALE_S = 86400, JWKS_RETRY_S = 30, JWKS_BURST = 4 };

/* GETs a URL of the operator's, for a coroutine; *ret_body is to be freed. authorities: in PEM,
 * whom alone to believe that it is the URL's host; NULL: those of the machine. */
typedef int issuer_fetch(void *ctx, const char *url, const char *authorities, size_t max,
                         char **ret_body, size_t *ret_len, struct error *err);

/* Whether a configuration can be used: INVALID_ARGUMENT names the member that is wrong. */
int issuers_check(struct slice config, struct error *err);

/* From now on these are trusted, and tokens of others are not; "" trusts nobody. Keys that came
 * from the same URL are kept. After an error everything is as it was. */
int auth_set_issuers(struct auth *auth, struct slice config, struct loop *loop, issuer_fetch *fetch,
                     void *ctx, struct error *err);
