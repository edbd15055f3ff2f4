/* SPDX-License-Identifier: Apache-2.0 */

/* Clones and updates. A clone is answered at once and made meanwhile (202); an update is in force
 * when it is answered (200). */

#include "api/v0/sandbox_change.h"

#include "api/call.h"
#include "api/handlers.h"
#include "api/secret_env.h"
#include "api/v0/sandbox.h"
#include "api/v0/sandbox_ca.h"
#include "api/v0/security_json.h"

/* What was read of a sandbox may be sent back: values that are not shown stay as they are. */
static int restore_env(struct http_exchange *x, const struct sandbox_info *info,
                       const struct slice **env, struct error *err)
{
    if (*env == NULL)
        return 0;
    struct slice *restored = arena_alloc(http_arena(x), sizeof(*restored));
    *restored = **env;
    *env = restored;
    return secret_env_restore(http_arena(x), info, restored, err);
}

int v0_sandbox_clone(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_clone request = {.workspace = call->workspace,
                                    .source = route_param(params, "name"),
                                    .security.may_loosen = security_may_loosen(call),
                                    .actor = call->principal.name};
    struct sandbox_info info;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        sandbox_clone_from_json(http_arena(x), body, &request, err) < 0 ||
        sandbox_check_if_match(x, call->api, call->workspace, request.source, err) < 0 ||
        sandboxes_get(call->api->sandboxes, call->workspace, request.source, http_arena(x), &info,
                      err) < 0 ||
        restore_env(x, &info, &request.env, err) < 0 ||
        sandboxes_clone(call->api->sandboxes, &request, http_arena(x), &info, err) < 0)
        return -1;
    sandbox_ca_clone(x, call, request.source, info.id);
    return sandbox_reply(x, 202, call->api, &info, err);
}

/* If-Match and metadata.revision ask the same; which of them was used shows in the refusal. */
static int update(struct http_exchange *x, const struct route_params *params,
                  const struct api_call *call, bool patch, struct error *err)
{
    struct sandbox_update request = {.workspace = call->workspace,
                                     .security.may_loosen = security_may_loosen(call),
                                     .may_extend = (call->principal.scopes & SCOPE_ADMIN) != 0,
                                     .actor = call->principal.name};
    struct sandbox_info info;
    uint64_t matched;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 || sandbox_if_match(x, &matched, err) < 0 ||
        sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"),
                      http_arena(x), &info, err) < 0 ||
        sandbox_update_from_json(http_arena(x), body, patch, info.name, &request, err) < 0 ||
        restore_env(x, &info, &request.env, err) < 0)
        return -1;
    request.name = info.id;
    if (matched != 0)
        request.revision = matched;
    if (sandboxes_update(call->api->sandboxes, &request, http_arena(x), &info, err) < 0) {
        if (matched != 0 && err->code == ERROR_REVISION_CONFLICT)
            err->code = ERROR_REVISION_MISMATCH;
        return -1;
    }
    return sandbox_reply(x, 200, call->api, &info, err);
}

int v0_sandbox_update(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    return update(x, params, ctx, false, err);
}

int v0_sandbox_patch(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    return update(x, params, ctx, true, err);
}
