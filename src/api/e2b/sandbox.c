/* SPDX-License-Identifier: Apache-2.0 */

/* Making, looking at and killing sandboxes. What is answered with is ready to be used. */

#include <string.h>

#include "api/call.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/sandbox_request.h"
#include "api/e2b/snapshots.h"
#include "api/e2b/templates.h"

/* Clients of the first generation ask for a token when they want one, and some of them know none:
 * whoever has such a sandbox's id may use it, as there. Later ones say so, or come by /v2. */
static bool is_first_generation(struct http_exchange *x)
{
    return strncmp(http_request(x)->path, "/v2/", 4) != 0;
}

static int create(struct http_exchange *x, const struct api_call *call,
                  const struct e2b_create_request *request, const char *image,
                  struct sandbox_info *ret_info, struct error *err)
{
    const struct sandbox_create create = {
        .workspace = call->workspace,
        .image = image,
        .env = request->env,
        .metadata = {.e2b_spec = e2b_spec_text(http_arena(x), &request->spec)},
        .enabled = true,
        .lifespan = request->lifespan,
        .network = request->network,
        .actor = call->principal.name,
    };
    return sandboxes_create(call->api->sandboxes, &create, http_arena(x), ret_info, err);
}

int e2b_sandbox_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct e2b_create_request request;
    struct sandbox_info info, snapshot;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 || e2b_create_from_json(arena, body, &request, err) < 0)
        return -1;
    if (is_first_generation(x) && yyjson_obj_get(body, "secure") == NULL)
        request.spec.secure = false;
    const char *image = e2b_template_image(arena, request.spec.template_id);
    if (image != NULL) {
        if (create(x, call, &request, image, &info, err) < 0)
            return -1;
    } else {
        if (e2b_snapshot_find(x, call, request.spec.template_id, &snapshot, NULL) < 0)
            return error_set(err, ERROR_IMAGE_NOT_FOUND, "template \"%.80s\" not found",
                             request.spec.template_id);
        const struct sandbox_resources same = {0};
        if (e2b_snapshot_start(x, call, &snapshot, &request, &same, &info, err) < 0)
            return -1;
    }
    return e2b_reply_handle(x, call, 201, info.id, err);
}

int e2b_sandbox_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_doc_set_root(doc, e2b_detail_json(x, doc, call, &info, true));
    return api_reply_json(x, 200, doc, err);
}

int e2b_sandbox_kill(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0 ||
        sandboxes_delete(call->api->sandboxes, call->workspace, info.id, call->principal.name,
                         http_arena(x), &info, err) < 0)
        return -1;
    return e2b_reply_nothing(x, err);
}
