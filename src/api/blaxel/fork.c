/* SPDX-License-Identifier: Apache-2.0 */

/* POST /v0/sandboxes/{name}/fork: what the seed calls a clone. Blaxel can also fork into
 * applications and from snapshots; neither exists here, and both are refused by name. */

#include <string.h>

#include "api/blaxel/handlers.h"
#include "api/blaxel/lifespan.h"
#include "api/blaxel/members.h"
#include "api/blaxel/sandbox_request.h"
#include "api/call.h"
#include "api/secret_env.h"
#include "base/timetext.h"

struct fork_request {
    const char *name;
    const char *type;
    const char *snapshot;
    const struct slice *env;
    yyjson_val *body;
};

static int read_fork(struct http_exchange *x, struct fork_request *request, struct error *err)
{
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        member_text(body, "", "targetName", &request->name, err) < 0 ||
        member_text(body, "", "targetType", &request->type, err) < 0 ||
        member_text(body, "", "snapshotId", &request->snapshot, err) < 0 ||
        blaxel_envs(http_arena(x), body, "", &request->env, err) < 0)
        return -1;
    request->body = body;
    if (request->name == NULL || request->name[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT, "targetName is required");
    if (request->type != NULL && strcmp(request->type, "sandbox") != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "targetType: \"%.40s\" cannot be made here, only \"sandbox\"",
                         request->type);
    if (request->snapshot != NULL && request->snapshot[0] != '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "snapshotId: there are no snapshots here; the sandbox itself is forked");
    return 0;
}

int blaxel_sandbox_fork(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct fork_request request = {0};
    struct sandbox_info source, made;

    if (read_fork(x, &request, err) < 0 ||
        sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"), arena,
                      &source, err) < 0)
        return -1;
    struct slice env = source.env;
    struct slice given = request.env != NULL ? *request.env : (struct slice){NULL, 0};
    if (secret_env_restore(arena, &source, &given, err) < 0 ||
        blaxel_merge_env(arena, &env, given, err) < 0)
        return -1;
    /* A ttl of the source counts from the fork's own beginning. */
    const struct lifespan_change ending = {
        .sets = 1u << LIFESPAN_EXPIRES,
        .to = blaxel_kept_lifespan(arena, source.metadata.blaxel_spec, time_now_ms())};
    const struct sandbox_clone clone = {
        .workspace = call->workspace,
        .source = source.id,
        .name = request.name,
        .env = &env,
        .blaxel_spec = blaxel_add_secret_marks(arena, source.metadata.blaxel_spec, request.body),
        .lifespan = ending.to.expires_ms != 0 ? &ending : NULL,
        .actor = call->principal.name};
    if (sandboxes_clone(call->api->sandboxes, &clone, arena, &made, err) < 0 ||
        sandboxes_settle(call->api->sandboxes, call->workspace, made.id, arena, &made, err) < 0)
        return -1;
    if (made.status == SANDBOX_FAILED)
        return error_set(err, ERROR_UNAVAILABLE, "the fork could not be started: %s",
                         made.event_count > 0 ? made.events[made.event_count - 1].message : "");
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "name", made.name);
    yyjson_mut_obj_add_str(doc, root, "type", "sandbox");
    return api_reply_json(x, 200, doc, err);
}
