/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Serving a port of a sandbox at an origin of its own: by host name, or on a port of the host. Who
 * may come in is decided here, by what is known of the port (sandbox/publish.h).
 */

#include <stdint.h>

#include "api/api.h"
#include "sandbox/publish.h"

/* Where a token for a port may be shown. */
#define PORT_TOKEN_FIELD "X-Cella-Port-Token"
#define PORT_TOKEN_QUERY "cella_token"

struct port_visit {
    const char *sandbox_id;
    uint16_t port;
    bool plain; /* it came over plain HTTP, whatever the server's public URL says */
};

/* Answers the exchange. UNAUTHORIZED, and for those who have a key SANDBOX_NOT_FOUND and FORBIDDEN;
 * then those of api_proxy_port(). */
int port_serve(struct http_exchange *x, const struct api *api, const struct port_visit *visit,
               struct error *err);

/* Cuts off those who are being served there: what let them in has changed. */
void port_serve_end(const struct api *api, const char *sandbox_id, uint16_t port);

/* What a token for the port is issued for (auth/token.h); in the arena. */
const char *port_token_audience(struct arena *arena, const struct port_info *info);
