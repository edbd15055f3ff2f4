/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Changing a sandbox. Blaxel's clients read the whole object, change what they want in it and send
 * it all back, with members that only the server sets among it.
 */

#include <string.h>

#include "api/blaxel/handlers.h"
#include "api/blaxel/lifespan.h"
#include "api/blaxel/sandbox.h"
#include "api/blaxel/sandbox_json.h"
#include "api/blaxel/sandbox_request.h"
#include "api/secret_env.h"
#include "base/quantity.h"

/* PATCH is an RFC 7396 merge into what GET shows; what comes of it is then put. */
static int patched(struct http_exchange *x, const struct sandbox_info *info, yyjson_val *patch,
                   yyjson_val **ret_object, struct error *err)
{
    struct arena *arena = http_arena(x);
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *shown = blaxel_sandbox_json(arena, doc, info, "", false);
    yyjson_mut_val *merged = yyjson_mut_merge_patch(doc, shown, yyjson_val_mut_copy(doc, patch));
    yyjson_mut_doc_set_root(doc, merged);
    return json_parse(arena, json_write(arena, doc, false), ret_object, err);
}

static int read_put(struct http_exchange *x, const struct sandbox_info *info,
                    struct blaxel_sandbox_request *ret_request, struct error *err)
{
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0)
        return -1;
    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the sandbox is to be sent as JSON");
    if (strcmp(http_request(x)->method, "PATCH") == 0 && patched(x, info, body, &body, err) < 0)
        return -1;
    if (blaxel_sandbox_request(http_arena(x), body, info->created_ms, ret_request, err) < 0)
        return -1;
    if (ret_request->name != NULL &&
        strcmp(ret_request->name, sandbox_address(info, http_arena(x))) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "metadata.name: a sandbox cannot be given another name");
    if (ret_request->image != NULL && strcmp(ret_request->image, info->image) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.runtime.image: a sandbox cannot be given another image");
    return 0;
}

/* The same memory as before asks for nothing: only another one brings the cpu with it. */
static struct sandbox_resources changed(const struct blaxel_sandbox_request *request,
                                        const struct sandbox_info *info)
{
    uint64_t wanted;
    if (request->resources.memory == NULL ||
        quantity_bytes(request->resources.memory, &wanted, NULL) < 0 ||
        wanted >> 20 == info->limits.memory_bytes >> 20)
        return (struct sandbox_resources){0};
    return request->resources;
}

/* What the object says of the sandbox's end is set when it says something new: what was set in
 * other ways is not in it, and stays. */
static const struct lifespan_change *ending(struct arena *arena,
                                            const struct blaxel_sandbox_request *request,
                                            const struct sandbox_info *info)
{
    const struct lifespan said =
        blaxel_kept_lifespan(arena, info->metadata.blaxel_spec, info->created_ms);
    if (lifespan_equal(&said, &request->lifespan))
        return NULL;
    struct lifespan_change *change = arena_alloc(arena, sizeof(*change));
    *change = (struct lifespan_change){.sets = 1u << LIFESPAN_IDLE | 1u << LIFESPAN_EXPIRES |
                                               LIFESPAN_SETS_ACTION,
                                       .to = request->lifespan};
    return change;
}

/* The whole object is sent, so what it does not have is to go. */
int blaxel_sandbox_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    static const struct slice none = {NULL, 0};
    const struct api_call *call = ctx;
    struct blaxel_sandbox_request request;
    struct sandbox_info info;

    if (sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"),
                      http_arena(x), &info, err) < 0 ||
        read_put(x, &info, &request, err) < 0)
        return -1;
    struct slice env = request.env != NULL ? *request.env : none;
    if (secret_env_restore(http_arena(x), &info, &env, err) < 0)
        return -1;
    const struct sandbox_update update = {
        .workspace = call->workspace,
        .name = info.id,
        .resources = changed(&request, &info),
        .env = &env,
        .labels = request.labels != NULL ? request.labels : &none,
        .external_id = request.external_id != NULL ? request.external_id : "",
        .display_name = request.display_name != NULL ? request.display_name : "",
        .blaxel_spec = request.spec != NULL ? request.spec : "",
        .enabled = request.enabled,
        .network = request.network,
        .lifespan = ending(http_arena(x), &request, &info),
        .actor = call->principal.name,
    };
    if (sandboxes_update(call->api->sandboxes, &update, http_arena(x), &info, err) < 0)
        return -1;
    return blaxel_reply_ready(x, call, info.id, err);
}
