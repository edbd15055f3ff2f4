/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is served at the address that the operator gives to those who watch the server
 * (--metrics-listen): its figures, and whether it is well. Whoever can reach it may read them, so
 * that a scraper needs no key; nothing else is there.
 */

#include <string.h>

#include "api/api.h"
#include "api/call.h"
#include "api/handlers.h"
#include "base/cleanup.h"

static const struct {
    const char *path;
    route_handler *handler;
} rows[] = {{"/metrics", ops_metrics}, {"/health", ops_health}, {"/ready", ops_ready}};

int api_handle_figures(struct http_exchange *x, void *ctx, struct error *err)
{
    struct api_call call = {.api = ctx, .workspace = ""};
    const struct http_request *request = http_request(x);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].path, request->path) != 0)
            continue;
        if (strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0)
            return rows[i].handler(x, NULL, &call, err);
        http_set_header(x, "Allow", "GET, HEAD");
        return error_set(err, ERROR_METHOD_NOT_ALLOWED, "%s takes GET alone", rows[i].path);
    }
    return error_set(err, ERROR_ROUTE_NOT_FOUND,
                     "no such path here: this address has /metrics, /health and /ready alone");
}
