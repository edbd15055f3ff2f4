/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ports of sandboxes that E2B's API has made. Its users know them to be open to whoever has the
 * address, unless the sandbox was made with network.allowPublicTraffic false: then a token is asked
 * for, which its maker was given. A port that was published (sandbox/publish.h) follows the rules
 * that it was published with, as do all ports of other sandboxes.
 */

#include "api/e2b/door.h"

/* Whether the visit is to such a port. */
bool e2b_port_is_open(struct http_exchange *x, const struct api *api, const char *sandbox_id,
                      uint16_t port);

/* Answers the exchange. own_origin: as in struct proxy_target. FORBIDDEN (403) without the token
 * where one is asked for, and those of api_proxy_port(). */
int e2b_port_serve(struct http_exchange *x, const struct api *api, const char *sandbox_id,
                   uint16_t port, bool own_origin, struct error *err);

/* Whether the request shows it. UNAUTHORIZED, TOO_MANY_ATTEMPTS. */
int e2b_traffic_check(struct http_exchange *x, const struct api *api, const char *sandbox_id,
                      struct error *err);
