/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /v0/sandbox/{name}/tokens: tokens that are bound to the sandbox. A token is in the answer that
 * makes it and nowhere else; all of them are revoked at once.
 */

#include "api/handlers.h"

#include <string.h>

#include "api/call.h"
#include "api/live.h"
#include "api/v0/scopes_json.h"
#include "auth/sandbox_token.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/limits.h"
#include "sandbox/sandbox.h"

static int read_request(struct http_exchange *x, struct sandbox_token_request *request,
                        struct error *err)
{
    struct wish {
        yyjson_val *scopes;
        const char *expires_in;
    } wish = {NULL, NULL};
    static const struct json_field fields[] = {
        {"scopes", JSON_ARRAY, .offset = offsetof(struct wish, scopes)},
        {"expiresIn", JSON_SCALAR_TEXT, .offset = offsetof(struct wish, expires_in)},
    };
    yyjson_val *object;
    uint64_t seconds = SANDBOX_TOKEN_S;
    if (api_json_body(x, &object, err) < 0 ||
        (object != NULL &&
         json_read(http_arena(x), object, "", fields, ARRAY_LEN(fields), &wish, err) < 0) ||
        scopes_read(wish.scopes, "read, write", &request->scopes, err) < 0)
        return -1;
    if (wish.expires_in != NULL && duration_seconds(wish.expires_in, &seconds, err) < 0)
        return error_prefix(err, "expiresIn");
    if (seconds < 1 || seconds > SANDBOX_TOKEN_MAX_S)
        return error_set(err, ERROR_INVALID_DURATION, "expiresIn: it has to be from 1s to %dd",
                         SANDBOX_TOKEN_MAX_S / 86400);
    request->lifetime_s = (int64_t)seconds;
    return 0;
}

int v0_sandbox_token_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_token_request request = {.workspace = call->workspace};
    struct sandbox_info info;
    const char *token;
    int64_t expires_ms;
    char expires[TIME_TEXT_SIZE];
    if (read_request(x, &request, err) < 0 ||
        sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"), arena,
                      &info, err) < 0)
        return -1;
    request.sandbox_id = info.id;
    if (auth_sandbox_token(call->api->auth, arena, &call->principal, &request, &token, &expires_ms,
                           err) < 0)
        return -1;
    time_rfc3339(expires_ms, expires);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "token", token);
    yyjson_mut_obj_add_str(doc, root, "sandbox", info.name);
    yyjson_mut_obj_add_str(doc, root, "sandboxId", info.id);
    scopes_add(doc, root, request.scopes);
    yyjson_mut_obj_add_str(doc, root, "expiresAt", expires);
    http_set_header(x, "Cache-Control", "no-store");
    return api_reply_json(x, 201, doc, err);
}

static bool exists(void *ctx, const char *sandbox_id)
{
    return sandboxes_has(ctx, sandbox_id);
}

int v0_sandbox_token_revoke(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    const struct api_call *call = ctx;
    struct sandboxes *sandboxes = call->api->sandboxes;
    struct sandbox_info info;
    if (sandboxes_get(sandboxes, call->workspace, route_param(params, "name"), http_arena(x), &info,
                      err) < 0 ||
        auth_sandbox_tokens_revoke(call->api->auth, info.id, exists, sandboxes, err) < 0)
        return -1;
    live_cancel_bound(call->api->live, info.id);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "sandbox", info.name);
    yyjson_mut_obj_add_str(doc, root, "message",
                           "Every token that is bound to the sandbox is worthless now");
    return api_reply_json(x, 200, doc, err);
}
