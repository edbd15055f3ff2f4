/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a request shows of who sends it, in any of the places where clients put that. */

#include "base/error.h"
#include "http/server.h"

struct credential {
    const char *text;  /* a key or token, in the arena; NULL: none was shown */
    const char *field; /* the name of the field that held it; NULL: none, or the query did */
};

/*
 * Looks in `Authorization: Bearer`, `X-Blaxel-Authorization: Bearer` and `X-Api-Key`, and in
 * `?token=` where the route's flags (auth/auth.h: ROUTE_TOKEN_IN_QUERY, ROUTE_FORWARDS) allow it.
 * The same one in several places is fine, two are CONFLICTING_CREDENTIALS. UNAUTHORIZED when a
 * field is there, but holds no credential.
 *
 * Who forwards the request to somebody else has to leave out ret->field, and `token` of the query.
 */
int credential_find(struct http_exchange *x, unsigned flags, struct credential *ret_credential,
                    struct error *err);

/* The workspace that X-Cella-Workspace or X-Blaxel-Workspace names; NULL: neither does.
 * CONFLICTING_CREDENTIALS when they name two. */
int credential_workspace(struct http_exchange *x, const char **ret_name, struct error *err);
