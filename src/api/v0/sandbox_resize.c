/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /v0/sandbox/{name}/resize: new limits under what runs, each as it is to be, or all of them
 * times a factor. It is an update of the resources and of nothing else, with its own event.
 */

#include "api/v0/sandbox_change.h"

#include "api/call.h"
#include "api/handlers.h"
#include "api/v0/resources_json.h"
#include "api/v0/sandbox.h"
#include "api/v0/security_json.h"
#include "base/cleanup.h"

struct request {
    struct sandbox_resources resources;
    yyjson_val *factor;
};

static const struct json_field fields[] = {
    RESOURCE_FIELDS(struct request, resources),
    {"factor", JSON_ANY, .offset = offsetof(struct request, factor)},
};

int resize_from_json(struct arena *arena, yyjson_val *body, struct sandbox_update *update,
                     struct error *err)
{
    struct request request = {0};
    if (body != NULL && json_read(arena, body, "", fields, ARRAY_LEN(fields), &request, err) < 0)
        return -1;
    update->resources = request.resources;
    bool given = resources_given(&request.resources);
    if (request.factor == NULL && !given)
        return error_set(
            err, ERROR_INVALID_ARGUMENT,
            "nothing to change: give resources, as {\"memory\": \"2Gi\"}, or a factor, "
            "as {\"factor\": 0.5}");
    if (request.factor == NULL)
        return 0;
    double factor = yyjson_get_num(request.factor);
    if (given)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "factor: either it or the resources themselves, not both");
    if (!yyjson_is_num(request.factor) || !(factor > 0))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "factor must be a number above 0, as 0.5 or 2");
    update->factor = factor;
    return 0;
}

int v0_sandbox_resize(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_update request = {.workspace = call->workspace,
                                     .name = route_param(params, "name"),
                                     .actor = call->principal.name,
                                     .resized = "Sandbox resized successfully"};
    struct sandbox_info info;
    yyjson_val *body;
    request.security.may_loosen = security_may_loosen(call);
    if (api_json_body(x, &body, err) < 0 ||
        resize_from_json(http_arena(x), body, &request, err) < 0 ||
        sandbox_check_if_match(x, call->api, call->workspace, request.name, err) < 0 ||
        sandboxes_update(call->api->sandboxes, &request, http_arena(x), &info, err) < 0)
        return -1;
    return sandbox_reply(x, 200, call->api, &info, err);
}
