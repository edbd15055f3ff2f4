/* SPDX-License-Identifier: Apache-2.0 */

/* /network of a sandbox: what it may reach, changed while it runs. */

#include <inttypes.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/v0/network_json.h"
#include "api/v0/sandbox.h"
#include "api/v0/security_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

static int reply(struct http_exchange *x, const struct sandbox_info *info, struct error *err)
{
    struct arena *arena = http_arena(x);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    network_to_json(arena, doc, root, info);
    yyjson_mut_val *network = yyjson_mut_obj_get(root, "network");
    if (info->network.len > 0)
        yyjson_mut_obj_add_str(doc, network, "name",
                               arena_printf(arena, "sandbox_network_%s", info->id));
    yyjson_mut_obj_add_str(doc, network, "revision",
                           arena_printf(arena, "rev-%" PRIu64, info->revision));
    http_set_header(x, "ETag", "\"rev-%" PRIu64 "\"", info->revision);
    yyjson_mut_doc_set_root(doc, network);
    return api_reply_json(x, 200, doc, err);
}

int v0_network_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"),
                      http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, &info, err);
}

/* A body in which nothing stands changes nothing (PATCH), or takes everything away (PUT). */
static int change(struct http_exchange *x, const struct route_params *params,
                  const struct api_call *call, bool replace, struct error *err)
{
    struct sandbox_update set = {.workspace = call->workspace,
                                 .name = route_param(params, "name"),
                                 .security.may_loosen = security_may_loosen(call),
                                 .actor = call->principal.name};
    struct sandbox_info info;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 || sandbox_if_match(x, &set.revision, err) < 0 ||
        network_from_json(http_arena(x), body, &set.network, &set.resources, err) < 0)
        return -1;
    set.network.replace = replace;
    if (sandboxes_update(call->api->sandboxes, &set, http_arena(x), &info, err) < 0) {
        if (err->code == ERROR_REVISION_CONFLICT)
            err->code = ERROR_REVISION_MISMATCH;
        return -1;
    }
    return reply(x, &info, err);
}

int v0_network_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    return change(x, params, ctx, true, err);
}

int v0_network_patch(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    return change(x, params, ctx, false, err);
}
