/* SPDX-License-Identifier: Apache-2.0 */

/* Ports of a sandbox: HTTP by proxy, and anything else as a stream after an upgrade. */

#include "api/call.h"
#include "api/handlers.h"
#include "api/port_proxy.h"
#include "base/limits.h"
#include "http/upgrade.h"
#include "loop/net.h"
#include "sandbox/tunnel.h"

/* The request's path without the last `len` bytes of it, and the slash before them. */
static const char *before(struct arena *arena, const char *path, size_t len)
{
    size_t rest = strlen(path) - len;
    return arena_dup(arena, path, rest > 0 && path[rest - 1] == '/' ? rest - 1 : rest);
}

int v0_port_proxy(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *call = ctx;
    struct proxy_target target = {.sandbox = route_param(params, "name"),
                                  .path = route_param_raw(params, "path")};
    if (api_port_param(params, &target.port, err) < 0)
        return -1;
    target.prefix = before(http_arena(x), http_request(x)->path, target.path.len);
    return api_proxy_port(x, call, &target, err);
}

int v0_port_tunnel(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct loop *loop = http_loop(x);
    __attribute__((cleanup(cleanup_tunnel))) struct tunnel *tunnel = NULL;
    uint16_t port = 0;
    int fd;
    struct slice early = {0};
    if (api_port_param(params, &port, err) < 0)
        return -1;
    if (http_wants_upgrade(x, "tcp") &&
        sandbox_tunnel(call->api->sandboxes, call->workspace, route_param(params, "name"), port,
                       false, &tunnel, err) < 0)
        return -1;
    if (http_upgrade(x, "tcp", &fd, &early, err) < 0)
        return -1;
    if (net_write(loop, tunnel_fd(tunnel), early.data, early.len, HTTP_BODY_TIMEOUT_MS, err) < 0)
        return -1;
    return net_relay(loop, fd, tunnel_fd(tunnel), TUNNEL_IDLE_MS, err);
}
