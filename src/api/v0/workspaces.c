/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /v0/workspaces. A caller sees the workspace of its key; one with the scope server sees all of
 * them, makes and deletes them. That {workspace} in a path is one the caller may be in was settled
 * before a handler runs.
 */

#include "api/handlers.h"

#include "api/call.h"
#include "api/call_limits.h"
#include "api/live.h"
#include "api/quotas_json.h"
#include "api/record.h"
#include "auth/workspaces.h"
#include "base/cleanup.h"
#include "loop/co.h"
#include "sandbox/groups.h"

/* How long a forced delete waits for the last sandbox to be gone, and how often it looks. */
enum { EMPTY_DEADLINE_MS = 60 * 1000, EMPTY_LOOK_MS = 20, EMPTY_BATCH = 100 };

static void add_workspace(yyjson_mut_doc *doc, yyjson_mut_val *object,
                          const struct workspace_info *info)
{
    yyjson_mut_obj_add_str(doc, object, "name", info->name);
    if (info->created_ms == 0) /* it came with the server */
        return;
    char time[TIME_TEXT_SIZE];
    time_rfc3339(info->created_ms, time);
    yyjson_mut_obj_add_strcpy(doc, object, "createdAt", time);
    yyjson_mut_obj_add_str(doc, object, "createdBy", info->created_by);
}

static int reply_workspace(struct http_exchange *x, int status, const struct api_call *call,
                           const char *name, struct error *err)
{
    struct workspace_info info;
    if (auth_workspace_get(call->api->auth, name, http_arena(x), &info, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_workspace(doc, root, &info);
    return api_reply_json(x, status, doc, err);
}

int v0_workspace_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct workspace_info *items;
    size_t count;
    auth_workspaces(call->api->auth, &call->principal, http_arena(x), &items, &count);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "workspaces");
    for (size_t i = 0; i < count; i++)
        add_workspace(doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    yyjson_mut_obj_add_uint(doc, root, "total", count);
    return api_reply_json(x, 200, doc, err);
}

int v0_workspace_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct workspace_info info;
    if (auth_workspace_get(call->api->auth, call->workspace, http_arena(x), &info, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_workspace(doc, root, &info);
    quotas_add(doc, root, call, record_caller_of(x));
    return api_reply_json(x, 200, doc, err);
}

int v0_workspace_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    struct request {
        const char *name;
    } request = {NULL};
    static const struct json_field fields[] = {
        {"name", JSON_STRING, .required = true, .offset = offsetof(struct request, name)},
        {"createdAt", JSON_IGNORED},
        {"createdBy", JSON_IGNORED},
    };
    const struct api_call *call = ctx;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0)
        return -1;
    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "name is required");
    if (json_read(http_arena(x), body, "", fields, ARRAY_LEN(fields), &request, err) < 0 ||
        auth_workspace_create(call->api->auth, request.name, call->principal.name, err) < 0)
        return -1;
    return reply_workspace(x, 201, call, request.name, err);
}

/* --- deleting --- */

/* Asks for some of a workspace's groups to be ended; *ret_left is how many there were. */
static int end_some(const struct api_call *call, size_t *ret_left, struct error *err)
{
    struct arena *arena = arena_new();
    struct group_info *items, info;
    size_t count;
    int rc = groups_list(call->api->sandboxes, call->workspace, EMPTY_BATCH, 0, arena, &items,
                         &count, ret_left, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct error why = {0};
        if (items[i].status != GROUP_ENDING &&
            groups_end(call->api->sandboxes, call->workspace, items[i].id, call->principal.name,
                       arena, &info, &why) < 0 &&
            why.code != ERROR_GROUP_NOT_FOUND) {
            *err = why;
            rc = -1;
        }
    }
    arena_free(arena);
    return rc;
}

/* Asks for some of a workspace's sandboxes to be deleted; *ret_left is how many there were. */
static int delete_some(const struct api_call *call, size_t *ret_left, struct error *err)
{
    struct arena *arena = arena_new();
    const struct sandbox_filter filter = {.workspace = call->workspace, .limit = EMPTY_BATCH};
    struct sandbox_info *items, info;
    size_t count;
    int rc = sandboxes_list(call->api->sandboxes, &filter, arena, &items, &count, ret_left, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct error why = {0};
        if (items[i].status != SANDBOX_DELETING &&
            sandboxes_delete(call->api->sandboxes, call->workspace, items[i].id,
                             call->principal.name, arena, &info, &why) < 0 &&
            why.code != ERROR_SANDBOX_NOT_FOUND) {
            *err = why;
            rc = -1;
        }
    }
    arena_free(arena);
    return rc;
}

/* Nobody gets in any more, but somebody may have been inside with a sandbox half made: then the
 * store says that it is not empty after all, and it is emptied again. */
static int delete_it(const struct api_call *call, bool force, struct error *err)
{
    int64_t deadline = loop_now(call->api->loop) + EMPTY_DEADLINE_MS;
    for (;;) {
        size_t left = 0, groups = 0;
        if (force && (end_some(call, &groups, err) < 0 || delete_some(call, &left, err) < 0))
            return -1;
        left += groups;
        if (left == 0 && auth_workspace_delete(call->api->auth, call->workspace, err) == 0)
            return 0;
        if (left == 0 && (!force || err->code != ERROR_WORKSPACE_NOT_EMPTY))
            return -1;
        if (loop_now(call->api->loop) > deadline)
            return error_set(err, ERROR_TIMEOUT,
                             "sandboxes of the workspace are still being deleted: try again");
        if (co_sleep(call->api->loop, EMPTY_LOOK_MS, err) < 0)
            return -1;
    }
}

int v0_workspace_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    bool force;
    if (api_query_bool(x, "force", false, &force, err) < 0 ||
        auth_workspace_close(call->api->auth, call->workspace, err) < 0)
        return -1;
    if (delete_it(call, force, err) < 0) {
        auth_workspace_reopen(call->api->auth, call->workspace);
        return -1;
    }
    /* One that is made again under the name is another one. */
    live_cancel_in(call->api->live, call->workspace, co_self(call->api->loop));
    (void)limits_set_workspace(call->api->limits, call->workspace, "", "", NULL);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "name", call->workspace);
    yyjson_mut_obj_add_str(doc, root, "message", "Workspace deleted successfully");
    return api_reply_json(x, 200, doc, err);
}
