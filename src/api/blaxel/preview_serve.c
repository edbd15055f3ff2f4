/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /preview/{id}/…: what a preview's address leads to. The one thing that is decided by the caller
 * is the rest of the path; which sandbox and which port it is about comes from the preview. So a
 * token opens nothing but its preview, however the path is written.
 */

#include <string.h>

#include "api/blaxel/handlers.h"
#include "api/blaxel/routes.h"
#include "api/call.h"
#include "auth/auth.h"
#include "sandbox/previews.h"

#define TOKEN_FIELD "X-Blaxel-Preview-Token"
#define TOKEN_NAME  "bl_preview_token" /* in a query, and of our cookie */

/* The value of a cookie, in the arena; NULL when there is none of that name. */
static const char *cookie(struct http_exchange *x, const char *name)
{
    const char *at = http_header(x, "Cookie");
    size_t name_len = strlen(name);
    while (at != NULL && *at != '\0') {
        at += strspn(at, "; ");
        size_t len = strcspn(at, ";");
        if (len > name_len && at[name_len] == '=' && strncmp(at, name, name_len) == 0)
            return arena_dup(http_arena(x), at + name_len + 1, len - name_len - 1);
        at += len;
    }
    return NULL;
}

static int shown_token(struct http_exchange *x, const char **ret_token, struct error *err)
{
    const char *in_query = NULL;
    if (http_query(x, TOKEN_NAME, &in_query, err) < 0)
        return -1;
    const char *token = http_header(x, TOKEN_FIELD);
    if (token == NULL)
        token = in_query;
    *ret_token = token != NULL ? token : cookie(x, TOKEN_NAME);
    return 0;
}

static void set_response_headers(struct http_exchange *x, const struct preview_info *preview)
{
    strv_each (header, preview->response_headers) {
        size_t len = strcspn(header, ":");
        http_set_header(x, arena_dup(http_arena(x), header, len), "%s", header + len + 2);
    }
}

/* The sandbox's own API, by the same rows as with a key; the sandbox is named by its id, which no
 * other one ever has. */
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
    call.principal = (struct principal){.scopes = SCOPE_READ | SCOPE_WRITE};
    memcpy(call.principal.name, "preview", sizeof("preview"));
    return route->handler(x, &params, &call, err);
}

int preview_serve(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *caller = ctx;
    struct preview_info preview;
    const char *token;

    if (shown_token(x, &token, err) < 0 ||
        preview_open(caller->api->sandboxes, route_param(params, "id"), token, http_arena(x),
                     &preview, err) < 0)
        return -1;
    set_response_headers(x, &preview);
    if (preview_is_session(&preview))
        return serve_sandbox(x, &preview, route_param_raw(params, "path"), caller->api, err);
    return error_set(err, ERROR_NOT_IMPLEMENTED, "ports are not served yet");
}
