/* SPDX-License-Identifier: Apache-2.0 */

/* What executions changed in a container, what differs between two of them, and the way back. */

#include "api/aisandbox/door.h"
#include "api/aisandbox/handlers.h"
#include "api/history_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

int aisandbox_history(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_info info;
    struct history_page page;
    uint64_t limit, offset;
    if (api_query_uint(x, "limit", 1, HISTORY_PAGE_MAX, HISTORY_PAGE_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, "offset", 0, UINT32_MAX, 0, &offset, err) < 0 ||
        aisandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    if (history_list(call->api->sandboxes, call->workspace, info.id, limit, offset, arena, &page,
                     err) < 0)
        return history_refused(x, err);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    history_page_json(arena, doc, root, &page);
    return api_reply_json(x, 200, doc, err);
}

struct diff_body {
    const char *from, *to;
};

static const struct json_field diff_fields[] = {
    {"fromExecId", JSON_STRING, true, offsetof(struct diff_body, from)},
    {"toExecId", JSON_STRING, true, offsetof(struct diff_body, to)},
};

static int read_body(struct http_exchange *x, const struct json_field *fields, size_t count,
                     void *into, struct error *err)
{
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0)
        return -1;
    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s is required", fields[0].name);
    return json_read(http_arena(x), body, "", fields, count, into, err);
}

int aisandbox_diff(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_info info;
    struct history_diff diff;
    struct diff_body body = {0};
    if (read_body(x, diff_fields, ARRAY_LEN(diff_fields), &body, err) < 0 ||
        aisandbox_find(x, call, route_param(params, "name"), &info, err) < 0)
        return -1;
    if (history_diff(call->api->sandboxes, call->workspace, info.id, body.from, body.to, arena,
                     &diff, err) < 0)
        return history_refused(x, err);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    history_diff_json(doc, root, &diff);
    return api_reply_json(x, 200, doc, err);
}

struct rollback_body {
    const char *execution;
};

static const struct json_field rollback_fields[] = {
    {"executionId", JSON_STRING, true, offsetof(struct rollback_body, execution)},
};

int aisandbox_rollback(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_info info;
    struct history_rollback done;
    struct rollback_body body = {0};
    if (read_body(x, rollback_fields, ARRAY_LEN(rollback_fields), &body, err) < 0 ||
        aisandbox_find(x, call, route_param(params, "name"), &info, err) < 0 ||
        history_rollback(call->api->sandboxes, call->workspace, info.id, body.execution, arena,
                         &done, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "status", done.left_total == 0 ? "success" : "partial");
    yyjson_mut_obj_add_str(doc, root, "containerId", aisandbox_id(arena, &info));
    history_rollback_json(doc, root, &done);
    return api_reply_json(x, 200, doc, err);
}
