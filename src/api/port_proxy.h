/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A program in a sandbox, served through the API: an exchange is passed on to a TCP port on the
 * sandbox's loopback, and its answer comes back, in constant memory both ways. After a 101 the two
 * connections are joined, so WebSocket works.
 *
 * Nothing is passed on unread. The request is written anew from what was parsed: `Host` is
 * localhost:PORT (so that a development server takes it for its own), fields that belong to one
 * connection are left out, X-Forwarded-For, -Host, -Proto and -Prefix are set, whatever the client
 * said. Keys and tokens of this server never reach the sandbox. The answer is a stranger's: it is
 * parsed as strictly, and written anew too; interim answers (1xx) and trailers are dropped.
 */

#include <stdbool.h>
#include <stdint.h>

#include "api/call.h"
#include "base/slice.h"

struct proxy_target {
    const char *sandbox; /* name, in call->workspace */
    uint16_t port;
    const char *host;   /* what the request's Host is to be; NULL: localhost:PORT */
    struct slice path;  /* for the program, as it was sent, without its first slash: "a%2Fb/c" */
    const char *prefix; /* what stood before it: "/v0/sandbox/box/port/3000"; "" */
    /*
     * The answer goes to an origin of the program's own, not to the API's: cookies (but for this
     * server's) pass both ways, and what the program says about embedding and sharing is its own
     * affair. Else cookies are dropped, because a browser would send them to every other sandbox
     * too, and pages are shown without the API's origin (Content-Security-Policy: sandbox).
     */
    bool own_origin;
    bool plain;         /* it came over plain HTTP, whatever the server's public URL says */
    const char *cookie; /* a Set-Cookie of this server's own, besides the program's; NULL: none */
    /* "Name: value" lists: set in the place of what the client, and what the program, says. */
    struct slice request_headers, response_headers;
};

/*
 * Answers the exchange. PORT_NOT_LISTENING when nothing listens there, UPSTREAM_FAILED when the
 * program closes the connection early or does not speak HTTP (both 502), TIMEOUT (504) when it says
 * nothing for PROXY_TIMEOUT_MS, or for as many seconds as X-Cella-Timeout names.
 */
int api_proxy_port(struct http_exchange *x, const struct api_call *call,
                   const struct proxy_target *target, struct error *err);
