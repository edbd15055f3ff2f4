/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A terminal for a browser: one page without anything from elsewhere, which speaks to …/terminal/ws
 * beside it. What may run and be reached on it is said by its policy, so that output of a sandbox
 * that got into it by some mistake could still do nothing.
 */

#include "api/call.h"
#include "api/handlers.h"
#include "sandbox/sandbox.h"
#include "terminal_page_html.h"

#define POLICY                                                                                     \
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "                  \
    "connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

int v0_terminal_page(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"),
                      http_arena(x), &info, err) < 0)
        return -1;
    http_set_header(x, "Content-Security-Policy", POLICY);
    http_set_header(x, "Referrer-Policy", "no-referrer"); /* the address may hold a key */
    http_set_header(x, "X-Content-Type-Options", "nosniff");
    http_set_header(x, "Cache-Control", "no-store");
    return http_reply(x, 200, "text/html; charset=utf-8", terminal_page, sizeof(terminal_page),
                      err);
}
