/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /preview/{id}/…: what a preview's address leads to. The one thing that is decided by the caller
 * is the rest of the path; which sandbox and which port it is about comes from the preview. So a
 * token opens nothing but its preview, however the path is written.
 */

#include "api/blaxel/preview_serve.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/blaxel/handlers.h"
#include "api/blaxel/routes.h"
#include "api/call.h"
#include "api/cookie.h"
#include "api/live.h"
#include "api/origin.h"
#include "api/record.h"
#include "api/port_proxy.h"
#include "auth/auth.h"
#include "sandbox/previews.h"

#define TOKEN_FIELD "X-Blaxel-Preview-Token"
#define TOKEN_NAME  COOKIE_PREVIEW /* in a query, and of our cookie */

struct visitor {
    const char *token;    /* NULL: none was shown */
    const char *in_query; /* the one in the address, if there is one */
};

static int visitor_read(struct http_exchange *x, struct visitor *ret_visitor, struct error *err)
{
    struct visitor visitor = {0};
    if (http_query(x, TOKEN_NAME, &visitor.in_query, err) < 0)
        return -1;
    visitor.token = http_header(x, TOKEN_FIELD);
    if (visitor.token == NULL)
        visitor.token = visitor.in_query;
    if (visitor.token == NULL)
        visitor.token = cookie_get(http_arena(x), http_header(x, "Cookie"), TOKEN_NAME);
    *ret_visitor = visitor;
    return 0;
}

#define CORS "Access-Control-"

static bool sets(const struct preview_info *preview, const char *prefix)
{
    strv_each (header, preview->response_headers)
        if (strncasecmp(header, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

/* Which pages may read it is the server's to say, unless the preview does. */
static void clear_for(struct http_exchange *x, const struct preview_info *preview)
{
    if (sets(preview, CORS))
        http_clear_headers(x);
}

static void set_response_headers(struct http_exchange *x, const struct preview_info *preview)
{
    clear_for(x, preview);
    strv_each (header, preview->response_headers) {
        size_t len = strcspn(header, ":");
        http_set_header(x, arena_dup(http_arena(x), header, len), "%s", header + len + 2);
    }
}

/* A browser asks whether a page may come, and shows no token for that. */
static int reply_preflight(struct http_exchange *x, const struct preview_info *preview,
                           const struct api *api, struct error *err)
{
    static const char methods[] = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    const char *asked = http_header(x, CORS "Request-Headers");
    if (!sets(preview, CORS))
        return origin_reply_options(x, api, methods, err);
    set_response_headers(x, preview);
    if (!sets(preview, CORS "Allow-Methods:"))
        http_set_header(x, CORS "Allow-Methods", "%s", methods);
    if (!sets(preview, CORS "Allow-Headers:") && asked != NULL)
        http_set_header(x, CORS "Allow-Headers", "%s", asked);
    return http_reply(x, 204, NULL, NULL, 0, err);
}

/* The sandbox's own API, by the same rows as with a token that is bound to it; the sandbox is named
 * by its id, which no other one ever has. */
static int serve_sandbox(struct http_exchange *x, const struct preview_info *preview,
                         struct slice rest, const struct api *api, struct error *err)
{
    struct api_call call = {.api = api, .workspace = preview->workspace};
    struct route_params params;
    const char *path = arena_printf(http_arena(x), "/%s/sandboxes/%s/%.*s", preview->workspace,
                                    preview->sandbox_id, (int)rest.len, rest.data);
    const struct route *route =
        route_find_at(blaxel_box_routes, blaxel_box_route_count, x, path, &params, err);
    if (route == NULL)
        return -1;
    const struct recorded_session session = {.route = route,
                                             .params = &params,
                                             .workspace = preview->workspace,
                                             .sandbox = preview->sandbox_name,
                                             .sandbox_id = preview->sandbox_id};
    if (record_session(x, &session, err) < 0)
        return -1;
    if ((route->scope & ROUTE_INSIDE) == 0)
        return error_set(err, ERROR_FORBIDDEN,
                         "the preview is of one sandbox, and this is not inside of it");
    call.principal = (struct principal){.name = "preview", .scopes = SCOPE_READ | SCOPE_WRITE};
    snprintf(call.principal.sandbox, sizeof(call.principal.sandbox), "%s", preview->sandbox_id);
    return route->handler(x, &params, &call, err);
}

/* A program behind a port. Its pages share this server's origin, so they get none of it: see
 * proxy_target.own_origin. */
static int serve_port(struct http_exchange *x, const struct preview_info *preview,
                      const struct visitor *visitor, struct slice rest, const struct api *api,
                      struct error *err)
{
    const struct api_call call = {.api = api, .workspace = preview->workspace};
    const char *prefix = arena_printf(http_arena(x), "/preview/%s", preview->id);
    clear_for(x, preview);
    /* A browser that came with the token in the address has to show it again on its next step. */
    if (!preview->is_public && visitor->in_query != NULL && http_accepts(x, "text/html"))
        http_set_header(x, "Set-Cookie", TOKEN_NAME "=%s; Path=%s; HttpOnly; SameSite=Lax",
                        visitor->in_query, prefix);
    const struct proxy_target target = {.sandbox = preview->sandbox_id,
                                        .port = (uint16_t)preview->port,
                                        .path = rest,
                                        .prefix = prefix,
                                        .request_headers = preview->request_headers,
                                        .response_headers = preview->response_headers};
    return api_proxy_port(x, &call, &target, err);
}

/* Links of a page are relative to its folder: without the last slash they would lead elsewhere. */
static int redirect_into(struct http_exchange *x, struct error *err)
{
    const struct http_request *request = http_request(x);
    http_set_header(x, "Location", "%s/%s%s", request->path, request->query[0] == '\0' ? "" : "?",
                    request->query);
    return http_reply(x, 307, "text/plain", "", 0, err);
}

/* --- who is inside --- */

enum { LIVE_NAME_SIZE = 128 }; /* an id, a token's name, and a slash */

static void live_name(char out[LIVE_NAME_SIZE], const char *preview_id, const char *token_name)
{
    snprintf(out, LIVE_NAME_SIZE, "%s/%s", preview_id, token_name);
}

void preview_serve_end(const struct api *api, const char *preview_id, const char *token_name)
{
    char name[LIVE_NAME_SIZE];
    if (token_name != NULL)
        live_name(name, preview_id, token_name);
    live_cancel(api->live, token_name == NULL ? preview_id : name, NULL);
}

static int serve(struct http_exchange *x, const struct preview_info *preview,
                 const struct visitor *visitor, struct slice rest, const struct api *api,
                 struct error *err)
{
    const char *path = http_request(x)->path;
    if (preview_is_session(preview)) {
        set_response_headers(x, preview);
        return serve_sandbox(x, preview, rest, api, err);
    }
    if (record_guest(x, preview->workspace, err) < 0)
        return -1;
    if (rest.len == 0 && path[strlen(path) - 1] != '/' && http_accepts(x, "text/html"))
        return redirect_into(x, err);
    return serve_port(x, preview, visitor, rest, api, err);
}

static int serve_live(struct http_exchange *x, const struct preview_info *preview,
                      const struct visitor *visitor, struct slice rest, const struct api *api,
                      struct error *err)
{
    struct co *co = co_self(api->loop);
    char name[LIVE_NAME_SIZE];
    struct live_call by_preview, by_token;
    live_name(name, preview->id, preview->opened_by == NULL ? "" : preview->opened_by);
    live_begin(api->live, &by_preview, co, preview->id);
    live_begin(api->live, &by_token, co, name);
    int rc = serve(x, preview, visitor, rest, api, err);
    live_end(api->live, &by_token);
    live_end(api->live, &by_preview);
    if (rc < 0 && (by_preview.cancelled || by_token.cancelled))
        return error_set(err, ERROR_UNAUTHORIZED,
                         "the preview is not open any more to those who were let in before");
    return rc;
}

int preview_serve(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *caller = ctx;
    struct slice rest = route_param_raw(params, "path");
    struct preview_info preview;
    struct visitor visitor;

    if (origin_is_preflight(x)) {
        if (preview_find(caller->api->sandboxes, route_param(params, "id"), http_arena(x), &preview,
                         err) < 0)
            return -1;
        return reply_preflight(x, &preview, caller->api, err);
    }
    if (visitor_read(x, &visitor, err) < 0 ||
        preview_open(caller->api->sandboxes, route_param(params, "id"), visitor.token,
                     http_arena(x), &preview, err) < 0)
        return -1;
    return serve_live(x, &preview, &visitor, rest, caller->api, err);
}
