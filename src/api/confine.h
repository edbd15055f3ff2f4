/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the holder of a token that is bound to one sandbox inside of it (auth/sandbox_token.h). */

#include "api/call.h"
#include "http/router.h"

/* Whether the caller may be in the sandbox of that id, as far as a bound token is concerned. */
bool confine_allows(const struct principal *principal, const char *sandbox_id);

/*
 * For a caller with a bound token: SANDBOX_NOT_FOUND unless the row's {name} names that sandbox;
 * from then on {name} is its id, so that the handler finds the same one, whatever is renamed,
 * deleted and made meanwhile. Others pass, and so do rows whose body has the name
 * (ROUTE_NAMED_IN_BODY): their handlers ask confine_allows().
 */
int confine(struct http_exchange *x, const struct route *route, const struct api_call *call,
            struct route_params *params, struct error *err);
