/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one way into the API. Whatever a route does, its request passes here first: a row of the
 * table is found, the caller is checked against the row's scope, and the workspace is settled. So
 * no handler can forget to ask who is calling, and none sees a workspace that is not the caller's.
 */

#include "api/api.h"

#include <string.h>

#include "api/authorize.h"
#include "api/call.h"
#include "api/call_memory.h"
#include "api/confine.h"
#include "api/credential.h"
#include "api/dialect.h"
#include "api/e2b/door.h"
#include "api/e2b/port.h"
#include "api/forwarded.h"
#include "api/group_path.h"
#include "api/handlers.h"
#include "api/live.h"
#include "api/observed.h"
#include "api/origin.h"
#include "api/port_host.h"
#include "api/port_serve.h"
#include "api/record.h"
#include "api/scalebox/door.h"
#include "auth/workspaces.h"
#include "base/log.h"
#include "http/router.h"

enum { STREAM_RETRY_S = 5 }; /* streams end when they end */

/* Settles which workspace the request is about: the one in its path, or the one in its fields, or
 * the caller's own. Another's and one that does not exist look the same from outside. */
static int workspace_settle(struct http_exchange *x, const struct route_params *params,
                            struct api_call *call, struct error *err)
{
    const char *in_path = route_param(params, "workspace"), *in_field = NULL;
    if (credential_workspace(x, &in_field, err) < 0)
        return -1;
    bool both = in_path[0] != '\0' && in_field != NULL;
    if (both && strcmp(workspace_canonical(in_path), workspace_canonical(in_field)) != 0)
        return error_set(err, ERROR_CONFLICTING_CREDENTIALS,
                         "the path names the workspace \"%.63s\" and a field \"%.63s\"", in_path,
                         in_field);
    return auth_workspace_enter(call->api->auth, &call->principal,
                                in_path[0] != '\0' ? in_path : in_field, http_arena(x),
                                &call->workspace, err);
}

/* OPTIONS, which needs no key: no row wants it, or a browser asks whether a page may come in. A row
 * that is public knows by itself. */
static bool is_for_browsers(struct http_exchange *x, const struct route *route,
                            const struct error *err)
{
    if (route == NULL)
        return strcmp(http_request(x)->method, "OPTIONS") == 0 &&
               err->code == ERROR_METHOD_NOT_ALLOWED;
    return (route->scope & SCOPE_PUBLIC) == 0 && origin_is_preflight(x);
}

static int serve(struct http_exchange *x, const struct route *route,
                 const struct route_params *params, struct api_call *call, struct error *err)
{
    struct live_calls *live = call->api->live;
    struct live_call mine;
    live_begin(live, &mine, co_self(call->api->loop), call->principal.key_id);
    mine.workspace = call->workspace;
    mine.sandbox = call->principal.sandbox[0] == '\0' ? NULL : call->principal.sandbox;
    int result = route->handler(x, params, call, err);
    live_end(live, &mine);
    if (result < 0 && mine.homeless)
        return error_set(err, ERROR_WORKSPACE_NOT_FOUND, "the workspace was deleted meanwhile");
    if (result < 0 && mine.cancelled)
        return error_set(err, ERROR_UNAUTHORIZED, "the %s was revoked meanwhile",
                         mine.sandbox != NULL || call->principal.by_token ? "token" : "API key");
    return result;
}

/* Needs no key: its row says so, or the operator. */
static bool is_public(const struct api *api, const struct route *route)
{
    return (route->scope & SCOPE_PUBLIC) != 0 ||
           (api->metrics_open && route->handler == ops_metrics);
}

/* Who is asking, and where; from then on it is on that caller's account. */
static int let_in(struct http_exchange *x, const struct route *route, struct route_params *params,
                  struct api_call *call, struct error *err)
{
    if (api_authorize(x, route->scope, call, err) < 0)
        return -1;
    limits_memory_join(call->api->limits, x,
                       caller_of_principal(&call->principal, http_request(x)->peer));
    return workspace_settle(x, params, call, err) < 0 ||
                   record_caller(x, &call->principal, call->workspace, err) < 0 ||
                   confine(x, route, call, params, err) < 0
               ? -1
               : 0;
}

static int dispatch(struct http_exchange *x, const struct api *api, const struct dialect *dialect,
                    struct error *err)
{
    struct route_params params;
    const char *path = group_path(http_arena(x), http_request(x)->path);
    const struct route *route =
        route_find_at(dialect->routes, *dialect->count, x, path, &params, err);
    if (is_for_browsers(x, route, err)) {
        bool any;
        const char *methods = route_methods(dialect->routes, *dialect->count, x, path, &any);
        return origin_reply_options(x, api, methods, err);
    }
    struct error why = route == NULL ? *err : (struct error){0};
    if (record_route(x, route, &params, err) < 0)
        return -1;
    if (route == NULL) {
        *err = why;
        return -1;
    }
    observed_route(x, dialect, route);
    struct api_call call = {.api = api, .workspace = ""};
    if (!is_public(api, route) && let_in(x, route, &params, &call, err) < 0)
        return -1;
    return serve(x, route, &params, &call, err);
}

/* A request to a name of a sandbox's own is none to the API, whatever its path is. */
static int serve_host(struct http_exchange *x, const struct api *api, const struct dialect *dialect,
                      struct error *err)
{
    struct port_host host;
    struct e2b_visit e2b;
    bool inside = e2b_visits(x, api, &e2b);
    if (inside && !e2b_port_is_ours(e2b.port)) {
        observed_port(x);
        return record_visit(x, e2b.sandbox_id, err) < 0 || origin_check_open(x, api, err) < 0
                   ? -1
                   : e2b_port_serve(x, api, e2b.sandbox_id, e2b.port, false, err);
    }
    if (!inside && api->domain != NULL &&
        port_host_parse(http_request(x)->host, api->domain, &host)) {
        observed_port(x);
        const struct port_visit visit = {.sandbox_id = host.sandbox_id, .port = host.port};
        if (record_visit(x, host.sandbox_id, err) < 0)
            return -1;
        if (e2b_port_is_open(x, api, host.sandbox_id, host.port))
            return origin_check_own(x, api, err) < 0
                       ? -1
                       : e2b_port_serve(x, api, host.sandbox_id, host.port, true, err);
        return port_serve(x, api, &visit, err);
    }
    origin_fields(x, api);
    if (origin_check_open(x, api, err) < 0)
        return -1;
    return dispatch(x, api, dialect, err);
}

/* By the sandbox that the request is for, or by its path. */
static const struct dialect *dialect_for(struct http_exchange *x, const struct api *api)
{
    struct e2b_visit visit;
    if (e2b_visits(x, api, &visit) || (origin_is_preflight(x) && e2b_will_visit(x)))
        return &dialect_e2b_envd;
    if (scalebox_visits(x) && strcmp(http_request(x)->path, "/health") == 0)
        return &dialect_scalebox_box;
    return dialect_of(http_request(x)->path);
}

void api_failed(struct http_exchange *x, const struct api *api, struct error *err)
{
    const struct http_request *request = http_request(x);
    http_can_tell(x, err); /* whichever shape its errors have */
    record_failure(x, err);
    if (err->code == ERROR_INTERNAL)
        log_error("%s %s: %s", request->method, request->path, err->message);
    else
        log_debug("%s %s: %s: %s", request->method, request->path, error_name(err->code),
                  err->message);
    if (err->code == ERROR_TOO_MANY_STREAMS && !http_started(x))
        http_set_header(x, "Retry-After", "%d", STREAM_RETRY_S);
    if ((err->code == ERROR_MEMORY_LIMITED || err->code == ERROR_OVERLOADED) && !http_started(x))
        http_set_header(x, "Retry-After", "%d", MEMORY_RETRY_S);
    if (err->code == ERROR_TOO_MANY_ATTEMPTS && !http_started(x))
        http_set_header(x, "Retry-After", "%d", auth_retry_after(api->auth, request->peer));
}

int api_handle(struct http_exchange *x, void *ctx, struct error *err)
{
    const struct api *api = ctx;
    const struct dialect *dialect = dialect_for(x, api);
    forwarded_settle(x, api->proxies);
    if (api->limits != NULL)
        limits_memory_join(api->limits, x, caller_of_peer(http_request(x)->peer));
    record_begin(x, api, dialect);
    observed_route(x, dialect, NULL);
    if (serve_host(x, api, dialect, err) == 0)
        return 0;
    api_failed(x, api, err);
    if (dialect->reply_error == NULL || http_started(x) || err->code == ERROR_CANCELLED)
        return -1;
    const struct error why = *err;
    return dialect->reply_error(x, &why, err);
}
