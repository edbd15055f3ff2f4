/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /v0/workspaces/{workspace}/limits: what a workspace may, where that is not what the server's
 * options say. They are written as those options are, for who operates the server alone: whoever
 * keeps a workspace does not widen it. What is told counts from the next request on.
 */

#include "api/handlers.h"

#include "api/call.h"
#include "api/call_limits.h"
#include "auth/workspaces.h"
#include "base/cleanup.h"

struct wish {
    const char *rates, *quotas;
};

static int reply(struct http_exchange *x, const struct api_call *call, struct error *err)
{
    struct workspace_info info;
    if (auth_workspace_get(call->api->auth, call->workspace, http_arena(x), &info, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "workspace", info.name);
    yyjson_mut_obj_add_str(doc, root, "rateLimit", info.rates);
    yyjson_mut_obj_add_str(doc, root, "quota", info.quotas);
    return api_reply_json(x, 200, doc, err);
}

int v0_workspace_limits_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    return reply(x, ctx, err);
}

/* Looked through first, then stored, then in force: what was acknowledged counts after a crash. */
static int change(struct http_exchange *x, const struct api_call *call, const struct wish *wish,
                  struct error *err)
{
    struct limits *limits = call->api->limits;
    struct limits_config config;
    if (limits_config_refine(&limits->config, wish->rates, wish->quotas, &config, err) < 0 ||
        auth_workspace_set_limits(call->api->auth, call->workspace, wish->rates, wish->quotas,
                                  err) < 0 ||
        limits_set_workspace(limits, call->workspace, wish->rates, wish->quotas, err) < 0)
        return -1;
    return reply(x, call, err);
}

int v0_workspace_limits_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    static const struct json_field fields[] = {
        {"rateLimit", JSON_STRING, .offset = offsetof(struct wish, rates)},
        {"quota", JSON_STRING, .offset = offsetof(struct wish, quotas)},
        {"workspace", JSON_IGNORED},
    };
    struct wish wish = {"", ""};
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0)
        return -1;
    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "rateLimit or quota is required");
    if (json_read(http_arena(x), body, "", fields, ARRAY_LEN(fields), &wish, err) < 0)
        return -1;
    return change(x, ctx, &wish, err);
}

int v0_workspace_limits_delete(struct http_exchange *x, const struct route_params *params,
                               void *ctx, struct error *err)
{
    static const struct wish none = {"", ""};
    return change(x, ctx, &none, err);
}
