/* SPDX-License-Identifier: Apache-2.0 */

/* Terminal sessions: listing, making and closing them. Being attached is in terminal_ws.c. */

#include "api/handlers.h"
#include "api/v0/terminal_json.h"
#include "sandbox/terminals.h"

int v0_terminal_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct agent_terminal *items;
    size_t count;
    if (sandbox_terminal_list(call->api->sandboxes, call->workspace, route_param(params, "name"),
                              arena, &items, &count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "sessions");
    for (size_t i = 0; i < count; i++)
        terminal_json(arena, doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    return api_reply_json(x, 200, doc, err);
}

int v0_terminal_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct agent_terminal_open open;
    struct agent_terminal made;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 || terminal_open_from_json(arena, body, &open, err) < 0 ||
        sandbox_terminal_open(call->api->sandboxes, call->workspace, route_param(params, "name"),
                              call->principal.name, &open, arena, &made, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    terminal_json(arena, doc, root, &made);
    return api_reply_json(x, 201, doc, err);
}

int v0_terminal_close(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    const char *session = route_param(params, "sessionId");
    if (sandbox_terminal_close(call->api->sandboxes, call->workspace, route_param(params, "name"),
                               session, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "sessionId", session);
    yyjson_mut_obj_add_str(doc, root, "message", "Terminal closed successfully");
    return api_reply_json(x, 200, doc, err);
}
