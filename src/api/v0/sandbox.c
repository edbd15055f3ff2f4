/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One sandbox and its life. Start, stop and delete answer 202 as soon as the wish is on record;
 * what becomes of it is seen in the sandbox's status and events.
 */

#include "api/v0/sandbox.h"

#include <inttypes.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/v0/sandbox_json.h"
#include "api/v0/amounts_json.h"
#include "base/cleanup.h"
#include "sandbox/pools.h"
#include "sandbox/processes.h"

int sandbox_reply(struct http_exchange *x, int status, const struct api *api,
                  const struct sandbox_info *info, struct error *err)
{
    struct arena *arena = http_arena(x);
    yyjson_mut_doc *doc = json_doc(arena);
    http_set_header(x, "ETag", "\"rev-%" PRIu64 "\"", info->revision);
    yyjson_mut_doc_set_root(doc, sandbox_json(arena, doc, info, api_base_url(x, api)));
    return api_reply_json(x, status, doc, err);
}

bool sandbox_parse_revision(const char *text, uint64_t *ret_revision)
{
    return strncmp(text, "rev-", 4) == 0 && api_parse_uint(text + 4, 1, INT64_MAX, ret_revision);
}

int sandbox_if_match(struct http_exchange *x, uint64_t *ret_revision, struct error *err)
{
    const char *given = http_header(x, "If-Match");
    uint64_t revision = 0;
    if (given != NULL && strcmp(given, "*") != 0) {
        size_t len = strlen(given);
        bool quoted = len >= 2 && given[0] == '"' && given[len - 1] == '"';
        const char *text = quoted ? arena_dup(http_arena(x), given + 1, len - 2) : given;
        if (!sandbox_parse_revision(text, &revision))
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "If-Match: %.80s is not one revision, as \"rev-123\"", given);
    }
    *ret_revision = revision;
    return 0;
}

int sandbox_check_if_match(struct http_exchange *x, const struct api *api, const char *workspace,
                           const char *name, struct error *err)
{
    uint64_t revision;
    if (sandbox_if_match(x, &revision, err) < 0)
        return -1;
    if (revision == 0 ||
        sandboxes_check_revision(api->sandboxes, workspace, name, revision, err) == 0)
        return 0;
    if (err->code == ERROR_REVISION_CONFLICT)
        err->code = ERROR_REVISION_MISMATCH;
    return -1;
}

int v0_sandbox_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_info info;
    if (sandboxes_get(call->api->sandboxes, call->workspace, route_param(params, "name"),
                      http_arena(x), &info, err) < 0)
        return -1;
    struct arena *arena = http_arena(x);
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = sandbox_json(arena, doc, &info, api_base_url(x, call->api));
    usage_add(doc, root, &info, call->api->sandboxes);
    http_set_header(x, "ETag", "\"rev-%" PRIu64 "\"", info.revision);
    yyjson_mut_doc_set_root(doc, root);
    return api_reply_json(x, 200, doc, err);
}

typedef int sandbox_change(struct sandboxes *s, const char *workspace, const char *name,
                           const char *actor, struct arena *arena, struct sandbox_info *ret_info,
                           struct error *err);

static int change(struct http_exchange *x, const struct route_params *params,
                  const struct api_call *call, sandbox_change *verb, struct error *err)
{
    struct sandbox_info info;
    if (sandbox_check_if_match(x, call->api, call->workspace, route_param(params, "name"), err) < 0)
        return -1;
    if (verb(call->api->sandboxes, call->workspace, route_param(params, "name"),
             call->principal.name, http_arena(x), &info, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    sandbox_change_json(doc, root, &info);
    return api_reply_json(x, 202, doc, err);
}

int v0_sandbox_start(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    return change(x, params, ctx, sandboxes_start, err);
}

int v0_sandbox_resume(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    return change(x, params, ctx, sandboxes_resume, err);
}

int v0_sandbox_pause(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    return change(x, params, ctx, sandboxes_pause, err);
}

int v0_sandbox_stop(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    return change(x, params, ctx, sandboxes_stop, err);
}

int v0_sandbox_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    bool back;
    if (api_query_bool(x, "returnToPool", false, &back, err) < 0)
        return -1;
    return change(x, params, ctx, back ? sandboxes_release : sandboxes_delete, err);
}

int v0_sandbox_release(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    struct request {
        bool back;
    } request = {true};
    static const struct json_field fields[] = {
        {"returnToPool", JSON_BOOL, .offset = offsetof(struct request, back)},
    };
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        (body != NULL &&
         json_read(http_arena(x), body, "", fields, ARRAY_LEN(fields), &request, err) < 0))
        return -1;
    return change(x, params, ctx, request.back ? sandboxes_release : sandboxes_delete, err);
}

/* Healthy is a sandbox whose agent answers a question, so one is asked. */
int v0_sandbox_health(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct agent_process *items = NULL;
    size_t count = 0;
    if (sandbox_process_list(call->api->sandboxes, call->workspace, route_param(params, "name"),
                             http_arena(x), &items, &count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "status", "ok");
    return api_reply_json(x, 200, doc, err);
}
