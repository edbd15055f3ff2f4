/* SPDX-License-Identifier: Apache-2.0 */

/* /port/{port}/…: a program in the sandbox, by proxy. */

#include <string.h>

#include "api/blaxel/handlers.h"
#include "api/call.h"
#include "api/port_proxy.h"

int box_port_proxy(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const char *text = route_param(params, "port"), *path = http_request(x)->path;
    struct slice rest = route_param_raw(params, "path");
    uint64_t port;
    if (text[0] == '0' || !api_parse_uint(text, 1, UINT16_MAX, &port))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.40s\" is not a port: a whole number from 1 to 65535", text);
    /* However the request came here, its path ends with the program's: what stands before that is
     * what a browser has to put in front of the program's own links. */
    size_t len = strlen(path) - rest.len;
    while (len > 0 && path[len - 1] == '/')
        len--;
    const struct proxy_target target = {.sandbox = route_param(params, "name"),
                                        .port = (uint16_t)port,
                                        .path = rest,
                                        .prefix = arena_dup(http_arena(x), path, len)};
    return api_proxy_port(x, ctx, &target, err);
}
