/* SPDX-License-Identifier: Apache-2.0 */

/* Making, looking at, listing and killing sandboxes. What is answered with is ready to be used,
 * unless the client asked not to wait. */

#include <string.h>

#include "api/call.h"
#include "api/e2b/sandbox_json.h"
#include "api/e2b/snapshots.h"
#include "api/scalebox/handlers.h"
#include "api/scalebox/sandbox_json.h"
#include "api/scalebox/sandbox_request.h"
#include "base/cleanup.h"
#include "image/image.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000 };

/* From a template that was made of a sandbox. */
static int create_from_snapshot(struct http_exchange *x, const struct api_call *call,
                                const struct scalebox_create_request *request,
                                struct sandbox_info *ret_info, struct error *err)
{
    struct sandbox_info snapshot;
    if (e2b_snapshot_find(x, call, request->spec.template_id, &snapshot, NULL) < 0)
        return error_set(err, ERROR_IMAGE_NOT_FOUND, "template \"%.80s\" not found",
                         request->spec.template_id);
    const struct e2b_create_request as_e2b = {.spec = request->spec,
                                              .env = request->env,
                                              .lifespan = request->lifespan,
                                              .network = request->network};
    return e2b_snapshot_start(x, call, &snapshot, &as_e2b, &request->resources, ret_info, err);
}

static int create(struct http_exchange *x, const struct api_call *call,
                  const struct scalebox_create_request *request, struct sandbox_info *ret_info,
                  struct error *err)
{
    const char *image;
    if (image_resolve(request->spec.template_id, &image, NULL) < 0)
        return create_from_snapshot(x, call, request, ret_info, err);
    const struct sandbox_create create = {
        .workspace = call->workspace,
        .image = request->spec.template_id,
        .resources = request->resources,
        .env = request->env,
        .metadata = {.display_name = request->name,
                     .e2b_spec = e2b_spec_text(http_arena(x), &request->spec)},
        .enabled = true,
        .lifespan = request->lifespan,
        .network = request->network,
        .actor = call->principal.name,
    };
    return sandboxes_create(call->api->sandboxes, &create, http_arena(x), ret_info, err);
}

int scalebox_sandbox_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    const struct api_call *call = ctx;
    struct scalebox_create_request request;
    struct sandbox_info info;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        scalebox_create_from_json(http_arena(x), body, &request, err) < 0 ||
        create(x, call, &request, &info, err) < 0 ||
        (!request.is_async && e2b_settle(x, call, info.id, &info, err) < 0))
        return -1;
    return scalebox_reply_sandbox(x, call, 201, &info, err);
}

int scalebox_sandbox_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                         struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (e2b_sandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    return scalebox_reply_sandbox(x, call, 200, &info, err);
}

/* One that is gone is what was asked for: the client kills some of its sandboxes twice, and takes
 * every refusal for a failure. */
int scalebox_sandbox_kill(struct http_exchange *x, const struct route_params *params, void *ctx,
                          struct error *err)
{
    const struct api_call *call = ctx;
    const char *id = route_param(params, "name");
    struct sandbox_info info;
    if ((e2b_sandbox_find(x, call, id, &info, err) < 0 ||
         sandboxes_delete(call->api->sandboxes, call->workspace, info.id, call->principal.name,
                          http_arena(x), &info, err) < 0) &&
        err->code != ERROR_SANDBOX_NOT_FOUND)
        return -1;
    yyjson_mut_doc *doc;
    yyjson_mut_val *root = scalebox_envelope(http_arena(x), &doc);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "data");
    json_add_lossy(doc, data, "sandbox_id", slice_of(id));
    yyjson_mut_obj_add_str(doc, data, "message", "terminated");
    return api_reply_json(x, 200, doc, err);
}

/* --- lists --- */

static int read_status(struct http_exchange *x, const char **ret_status, struct error *err)
{
    const char *status = NULL;
    if (http_query(x, "status", &status, err) < 0)
        return -1;
    /* Two that a sandbox never has here; those who ask for them get an empty list. */
    bool known =
        status == NULL || strcmp(status, "created") == 0 || strcmp(status, "terminated") == 0;
    for (int i = 0; i < SANDBOX_STATUS_COUNT && !known; i++)
        known = strcmp(status, scalebox_status((enum sandbox_status)i)) == 0;
    if (!known)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "status: \"%.40s\" is none of created, starting, running, pausing, "
                         "paused, resuming, terminating, terminated, failed",
                         status);
    *ret_status = status;
    return 0;
}

int scalebox_sandbox_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                          struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    const struct sandbox_filter filter = {
        .workspace = call->workspace, .newest_first = true, .limit = SIZE_MAX};
    struct sandbox_info *items;
    size_t count, all;
    uint64_t limit, offset, total = 0;
    const char *status = NULL;
    if (read_status(x, &status, err) < 0 ||
        api_query_uint(x, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, "offset", 0, UINT32_MAX, 0, &offset, err) < 0 ||
        sandboxes_list(call->api->sandboxes, &filter, arena, &items, &count, &all, err) < 0)
        return -1;
    yyjson_mut_doc *doc;
    yyjson_mut_val *root = scalebox_envelope(arena, &doc);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "data");
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, data, "sandboxes");
    for (size_t i = 0; i < count; i++) {
        if (e2b_is_snapshot(arena, items[i].metadata.e2b_spec) ||
            (status != NULL &&
             strcmp(status, scalebox_status(sandbox_seen_status(&items[i]))) != 0))
            continue;
        if (total >= offset && total < offset + limit)
            yyjson_mut_arr_append(list, scalebox_sandbox_json(x, doc, call, &items[i], false));
        total++;
    }
    api_json_page(doc, data, total, limit, offset);
    return api_reply_json(x, 200, doc, err);
}
