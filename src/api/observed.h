/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is counted and logged of every request, whichever facade it came to. */

#include "api/api.h"
#include "api/dialect.h"
#include "http/server.h"
#include "observe/meters.h"

/* Which row serves the request (NULL: none), for what is told of it afterwards. */
void observed_route(struct http_exchange *x, const struct dialect *dialect,
                    const struct route *route);
/* … a program of a sandbox does, behind a name of its own. */
void observed_port(struct http_exchange *x);
/* It failed with this. */
void observed_error(const struct api *api, const struct error *why);

/* ctx is the struct api. */
http_recorder observed_request;

/* Everything there is to tell of the server. On a coroutine; waits for nobody. */
void observed_tell(const struct api *api, struct meter_sink *sink);
