/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /v0/sandboxes: sandboxes as Blaxel's clients handle them. Their protocol knows no waiting: a
 * sandbox that was answered with is used at once, so creating and changing return when it is there.
 */

#include "api/blaxel/sandbox.h"

#include "api/blaxel/handlers.h"
#include "api/blaxel/sandbox_json.h"
#include "api/blaxel/sandbox_request.h"
#include "api/call.h"
#include "base/timetext.h"

static int reply(struct http_exchange *x, const struct api_call *call,
                 const struct sandbox_info *info, struct error *err)
{
    struct arena *arena = http_arena(x);
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_doc_set_root(
        doc, blaxel_sandbox_json(arena, doc, info, api_base_url(x, call->api), true));
    return api_reply_json(x, 200, doc, err);
}

int blaxel_reply_ready(struct http_exchange *x, const struct api_call *call, const char *name,
                       struct error *err)
{
    struct sandbox_info info;
    if (sandboxes_settle(call->api->sandboxes, call->workspace, name, http_arena(x), &info, err) <
        0)
        return -1;
    if (info.status == SANDBOX_FAILED)
        return error_set(err, ERROR_UNAVAILABLE, "sandbox \"%s\" could not be started: %s",
                         info.name,
                         info.event_count > 0 ? info.events[info.event_count - 1].message
                                              : "no reason is known");
    return reply(x, call, &info, err);
}

/* The one of that name, made to run when it does not. false: there is none that could be used. */
static bool reuse(struct http_exchange *x, const struct api_call *call, const char *name)
{
    struct sandbox_info info;
    struct error ignored;
    if (name == NULL || sandboxes_get(call->api->sandboxes, call->workspace, name, http_arena(x),
                                      &info, &ignored) < 0)
        return false;
    if (info.status == SANDBOX_STOPPED || info.status == SANDBOX_STOPPING ||
        info.status == SANDBOX_PAUSED || info.status == SANDBOX_PAUSING ||
        info.status == SANDBOX_FAILED)
        return sandboxes_start(call->api->sandboxes, call->workspace, name, call->principal.name,
                               http_arena(x), &info, &ignored) == 0 ||
               ignored.code == ERROR_ALREADY_RUNNING;
    return info.status != SANDBOX_DELETING;
}

/* Its clients expect the Internet; where sandboxes have no network they go without. */
static const struct network_request blaxel_network = {
    .given = NETWORK_MODE, .mode = NET_ISOLATED, .by_default = true};

int blaxel_sandbox_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                          struct error *err)
{
    const struct api_call *call = ctx;
    struct blaxel_sandbox_request request;
    struct sandbox_info info;
    bool or_existing = false;
    yyjson_val *body;

    if (api_json_body(x, &body, err) < 0 ||
        api_query_bool(x, "createIfNotExist", false, &or_existing, err) < 0 ||
        blaxel_sandbox_request(http_arena(x), body, time_now_ms(), &request, err) < 0)
        return -1;
    if (or_existing && reuse(x, call, request.name))
        return blaxel_reply_ready(x, call, request.name, err);
    const struct sandbox_create create = {
        .workspace = call->workspace,
        .name = request.name,
        .image = request.image,
        .resources = request.resources,
        .env = request.env != NULL ? *request.env : (struct slice){NULL, 0},
        .metadata = {.labels = request.labels != NULL ? *request.labels : (struct slice){NULL, 0},
                     .external_id = request.external_id,
                     .display_name = request.display_name,
                     .blaxel_spec = request.spec},
        .enabled = request.enabled == NULL || *request.enabled,
        .lifespan = request.lifespan,
        .network = request.network.given != 0 ? request.network : blaxel_network,
        .actor = call->principal.name,
    };
    if (sandboxes_create(call->api->sandboxes, &create, http_arena(x), &info, err) < 0) {
        /* Somebody else was faster with the same name. */
        if (err->code == ERROR_ALREADY_EXISTS && or_existing && reuse(x, call, request.name))
            return blaxel_reply_ready(x, call, request.name, err);
        return -1;
    }
    return blaxel_reply_ready(x, call, info.id, err);
}

int blaxel_sandbox_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"),
                      http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, call, &info, err);
}

int blaxel_sandbox_by_external_id(struct http_exchange *x, const struct route_params *params,
                                  void *ctx, struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (sandboxes_get_external(call->api->sandboxes, call->workspace, route_param(params, "id"),
                               http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, call, &info, err);
}

int blaxel_sandbox_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                          struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (sandboxes_delete(call->api->sandboxes, call->workspace, route_param(params, "name"),
                         call->principal.name, http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, call, &info, err);
}
