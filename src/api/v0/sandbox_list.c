/* SPDX-License-Identifier: Apache-2.0 */

/* /v0/sandbox: all of a workspace's sandboxes, and one more. */

#include "api/handlers.h"

#include "api/call.h"
#include "api/v0/sandbox.h"
#include "api/v0/sandbox_create.h"
#include "api/v0/sandbox_json.h"

enum { LIST_LIMIT_DEFAULT = 20, LIST_LIMIT_MAX = 1000 };

static int list_filter(struct http_exchange *x, const struct api_call *call,
                       struct sandbox_filter *ret_filter, struct error *err)
{
    struct sandbox_filter filter = {.workspace = call->workspace};
    const char *status = NULL;
    uint64_t limit, offset;

    if (api_query_uint(x, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, "offset", 0, INT32_MAX, 0, &offset, err) < 0 ||
        http_query(x, "status", &status, err) < 0)
        return -1;
    filter.limit = limit;
    filter.offset = offset;
    filter.by_status = status != NULL;
    if (status != NULL && sandbox_status_parse(status, &filter.status, err) < 0)
        return error_prefix(err, "status");
    *ret_filter = filter;
    return 0;
}

int v0_sandbox_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_filter filter;
    struct sandbox_info *items = NULL;
    size_t count = 0, total = 0;

    if (list_filter(x, call, &filter, err) < 0 ||
        sandboxes_list(call->api->sandboxes, &filter, arena, &items, &count, &total, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "sandboxes");
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(list, sandbox_json(arena, doc, &items[i], NULL));
    yyjson_mut_obj_add_uint(doc, root, "total", total);
    yyjson_mut_obj_add_uint(doc, root, "limit", filter.limit);
    yyjson_mut_obj_add_uint(doc, root, "offset", filter.offset);
    return api_reply_json(x, 200, doc, err);
}

int v0_sandbox_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_create request = {.workspace = call->workspace, .actor = call->principal.name};
    struct sandbox_info info;
    yyjson_val *body;

    if (api_json_body(x, &body, err) < 0 ||
        sandbox_create_from_json(arena, body, &request, err) < 0 ||
        sandboxes_create(call->api->sandboxes, &request, arena, &info, err) < 0)
        return -1;
    return sandbox_reply(x, 202, call->api, &info, err);
}
