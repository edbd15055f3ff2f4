/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which header fields go through the port proxy, and which do not: both ways. */

#include "api/port_proxy.h"
#include "http/client.h"

/* The request's fields for the program, in the arena. upgrade: the protocol that the client wants
 * to go on in, or NULL. */
struct http_header *port_request_fields(struct http_exchange *x, const struct api_call *call,
                                        const struct proxy_target *target, const char *upgrade,
                                        size_t *ret_count);

/* The path and the query for the program: without this server's tokens. */
const char *port_request_target(struct http_exchange *x, const struct proxy_target *target);

/* Sets the fields of the program's answer on the exchange. */
void port_answer_fields(struct http_exchange *x, const struct proxy_target *target,
                        const struct http_answer *answer);

/* What the client wants to go on in, when it does and can ("websocket"); NULL. */
const char *port_wants_upgrade(const struct http_exchange *x);
