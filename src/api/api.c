/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one way into the API. Whatever a route does, its request passes here first: a row of the
 * table is found, the caller is checked against the row's scope, and the workspace is settled. So
 * no handler can forget to ask who is calling, and none sees a workspace that is not the caller's.
 */

#include "api/api.h"

#include <string.h>

#include "api/call.h"
#include "api/routes.h"
#include "base/log.h"
#include "http/router.h"

/* What the seed's addresses call the workspace that everybody has. */
static const char *workspace_canonical(const char *name)
{
    return strcmp(name, "default-workspace") == 0 ? "default" : name;
}

/* A workspace in the path has to be the caller's own; another's and one that does not exist look
 * the same from outside. Paths without one mean the caller's. */
static int workspace_settle(struct api_call *call, const struct route_params *params,
                            struct error *err)
{
    const char *named = route_param(params, "workspace");
    call->workspace = call->principal.workspace;
    if (named[0] == '\0' || strcmp(workspace_canonical(named), call->workspace) == 0)
        return 0;
    return error_set(err, ERROR_WORKSPACE_NOT_FOUND, "there is no workspace \"%.63s\"", named);
}

static int authorize(struct http_exchange *x, const struct route *route, struct api_call *call,
                     struct error *err)
{
    if (route->scope == SCOPE_PUBLIC)
        return 0;
    if (auth_check(call->api->auth, http_header(x, "Authorization"), route->scope, &call->principal,
                   err) == 0)
        return 0;
    if (err->code == ERROR_UNAUTHORIZED)
        http_set_header(x, "WWW-Authenticate", "Bearer realm=\"cella\"");
    return -1;
}

static int dispatch(struct http_exchange *x, const struct api *api, struct error *err)
{
    struct route_params params;
    const struct route *route = route_find(api_routes, api_route_count, x, &params, err);
    if (route == NULL)
        return -1;
    struct api_call call = {.api = api};
    if (authorize(x, route, &call, err) < 0 || workspace_settle(&call, &params, err) < 0)
        return -1;
    return route->handler(x, &params, &call, err);
}

int api_handle(struct http_exchange *x, void *ctx, struct error *err)
{
    const struct http_request *request = http_request(x);
    if (dispatch(x, ctx, err) == 0)
        return 0;
    if (err->code == ERROR_INTERNAL)
        log_error("%s %s: %s", request->method, request->path, err->message);
    else
        log_debug("%s %s: %s: %s", request->method, request->path, error_name(err->code),
                  err->message);
    return -1;
}
