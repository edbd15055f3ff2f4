/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /v0/groups: sandboxes that come and go together. As with one sandbox, start, stop and end answer
 * 202 as soon as the wish is on record. What is inside a sandbox of a group is found below
 * /v0/groups/{group}/sandbox/{name}, by the rows for any sandbox (api/group_path.h).
 */

#include "api/handlers.h"

#include "api/call.h"
#include "api/v0/group_json.h"
#include "api/v0/sandbox.h"
#include "api/v0/security_json.h"
#include "base/limits.h"
#include "sandbox/groups.h"

enum { LIST_LIMIT_DEFAULT = 20, LIST_LIMIT_MAX = 1000 };

static int reply(struct http_exchange *x, int status, const struct group_info *info,
                 struct error *err)
{
    struct arena *arena = http_arena(x);
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_doc_set_root(doc, group_json(arena, doc, info, false));
    return api_reply_json(x, status, doc, err);
}

int v0_group_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    uint64_t limit, offset;
    struct group_info *items = NULL;
    size_t count = 0, total = 0;
    if (api_query_uint(x, "limit", 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, "offset", 0, INT32_MAX, 0, &offset, err) < 0 ||
        groups_list(call->api->sandboxes, call->workspace, limit, offset, arena, &items, &count,
                    &total, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "groups");
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(list, group_json(arena, doc, &items[i], true));
    api_json_page(doc, root, total, limit, offset);
    return api_reply_json(x, 200, doc, err);
}

/* What a sandbox has of who asks for it. */
static struct sandbox_create asked_by(const struct api_call *call)
{
    return (struct sandbox_create){.workspace = call->workspace,
                                   .actor = call->principal.name,
                                   .security.may_loosen = security_may_loosen(call)};
}

int v0_group_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    const struct sandbox_create each = asked_by(call);
    struct group_create request = {.workspace = call->workspace, .actor = call->principal.name};
    struct group_info info;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        group_create_from_json(http_arena(x), body, &each, &request, err) < 0 ||
        groups_create(call->api->sandboxes, &request, http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, 202, &info, err);
}

int v0_group_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    const struct api_call *call = ctx;
    struct group_info info;
    if (groups_get(call->api->sandboxes, call->workspace, route_param(params, "group"),
                   http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, 200, &info, err);
}

int v0_group_patch(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandboxes *sandboxes = call->api->sandboxes;
    const struct sandbox_create each = asked_by(call);
    const char *name = route_param(params, "group");
    struct group_create request = {.workspace = call->workspace, .actor = call->principal.name};
    struct group_info info;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        groups_get(sandboxes, call->workspace, name, arena, &info, err) < 0 ||
        group_patch_from_json(arena, body, &each, info.spec, &request, err) < 0 ||
        groups_set_spec(sandboxes, name, &request, arena, &info, err) < 0)
        return -1;
    return reply(x, 200, &info, err);
}

typedef int group_change(struct sandboxes *s, const char *workspace, const char *name,
                         const char *actor, struct arena *arena, struct group_info *ret_info,
                         struct error *err);

static int change(struct http_exchange *x, const struct route_params *params,
                  const struct api_call *call, group_change *verb, struct error *err)
{
    struct group_info info;
    if (verb(call->api->sandboxes, call->workspace, route_param(params, "group"),
             call->principal.name, http_arena(x), &info, err) < 0)
        return -1;
    return reply(x, 202, &info, err);
}

int v0_group_start(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    return change(x, params, ctx, groups_start, err);
}

int v0_group_stop(struct http_exchange *x, const struct route_params *params, void *ctx,
                  struct error *err)
{
    return change(x, params, ctx, groups_stop, err);
}

int v0_group_end(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    return change(x, params, ctx, groups_end, err);
}

int v0_group_resize(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct sandbox_update request = {.workspace = call->workspace,
                                     .actor = call->principal.name,
                                     .security.may_loosen = security_may_loosen(call),
                                     .resized = "Sandbox resized with its group"};
    struct group_info info;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        group_resize_from_json(http_arena(x), body, &request, err) < 0 ||
        groups_resize(call->api->sandboxes, route_param(params, "group"), &request, http_arena(x),
                      &info, err) < 0)
        return -1;
    return reply(x, 200, &info, err);
}
