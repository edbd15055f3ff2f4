/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A route table. A row names method, path, scope and handler; ROUTE() takes all four, so that a
 * route without a scope does not compile. Scopes are numbers to this layer; 0 is none.
 *
 * A path is literal segments and parameters: `{name}` takes one non-empty segment, `{path*}` (last)
 * takes the rest, which may be empty. Matching works on the raw path, then each parameter is
 * percent-decoded, so that an encoded slash stays inside its parameter. The first row that fits
 * wins; a path that fits rows of other methods only is METHOD_NOT_ALLOWED with an Allow field.
 * HEAD goes to GET's row, and a row of method
 * ANY takes them all. A trailing slash on a path without `{path*}` is ignored.
 */

#include <stdbool.h>

#include "base/slice.h"
#include "http/server.h"

enum { ROUTE_PARAMS_MAX = 4 };

struct route_params {
    struct {
        const char *name;
        struct slice value; /* decoded, NUL-terminated, in the exchange's arena */
        struct slice raw;   /* as it stands in the path */
    } items[ROUTE_PARAMS_MAX];
    size_t count;
};

typedef int route_handler(struct http_exchange *x, const struct route_params *params, void *ctx,
                          struct error *err);

struct route {
    const char *method;
    const char *path;
    unsigned scope;
    route_handler *handler;
};

#define ROUTE(method_, path_, scope_, handler_)                                                    \
    {                                                                                              \
        .method = (method_), .path = (path_), .scope = (scope_), .handler = (handler_)             \
    }

/* Finds the row for the exchange's request in a table of n rows; fills *ret_params.
 * ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED or INVALID_PATH (broken escapes, NUL) when there is none. */
const struct route *route_find(const struct route *table, size_t n, struct http_exchange *x,
                               struct route_params *ret_params, struct error *err);

/* The same for another path than the request's own, which lives as long as the exchange. */
const struct route *route_find_at(const struct route *table, size_t n, struct http_exchange *x,
                                  const char *path, struct route_params *ret_params,
                                  struct error *err);

/* "GET, HEAD, PUT": what the rows of a path serve; "" when there are none. *ret_any: one of them
 * takes any method. */
const char *route_methods(const struct route *table, size_t n, struct http_exchange *x,
                          const char *path, bool *ret_any);

/* A parameter's value; "" when the row has none of that name. */
const char *route_param(const struct route_params *params, const char *name);
/* The same before decoding: where an encoded slash means something else than a plain one. */
struct slice route_param_raw(const struct route_params *params, const char *name);
