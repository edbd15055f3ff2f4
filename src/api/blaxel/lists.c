/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Resources that Blaxel has and Cella does not: images of one's own, volumes, drives, snapshots,
 * schedules. Clients list them in passing, and the list of what is there is empty. Making one is no
 * route at all.
 */

#include "api/blaxel/handlers.h"
#include "api/call.h"

/* {"data":[],"meta":{"hasMore":false,"total":0}} */
int blaxel_empty_page(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_arr(doc, root, "data");
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "meta");
    yyjson_mut_obj_add_bool(doc, meta, "hasMore", false);
    yyjson_mut_obj_add_uint(doc, meta, "total", 0);
    return api_reply_json(x, 200, doc, err);
}

int blaxel_empty_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    return http_reply(x, 200, "application/json", "[]", 2, err);
}

/* The same of one sandbox, which has to be there. */
static int require_sandbox(struct http_exchange *x, const struct route_params *params,
                           const struct api_call *call, struct error *err)
{
    struct sandbox_info info;
    return sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"),
                         http_arena(x), &info, err);
}

int blaxel_sandbox_empty_page(struct http_exchange *x, const struct route_params *params, void *ctx,
                              struct error *err)
{
    if (require_sandbox(x, params, ctx, err) < 0)
        return -1;
    return blaxel_empty_page(x, params, ctx, err);
}

int blaxel_sandbox_empty_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                              struct error *err)
{
    if (require_sandbox(x, params, ctx, err) < 0)
        return -1;
    return http_reply(x, 200, "application/json", "[]", 2, err);
}
