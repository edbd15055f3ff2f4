/* SPDX-License-Identifier: Apache-2.0 */

/* /history, /diff and /rollback of a sandbox: what executions did to its files, and the way back.
 */

#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/history_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

int v0_history_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct history_page page;
    uint64_t limit, offset;
    if (api_query_uint(x, "limit", 1, HISTORY_PAGE_MAX, HISTORY_PAGE_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, "offset", 0, INT32_MAX, 0, &offset, err) < 0)
        return -1;
    if (history_list(call->api->sandboxes, call->workspace, route_param(params, "name"), limit,
                     offset, arena, &page, err) < 0)
        return history_refused(x, err);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    history_page_json(arena, doc, root, &page);
    return api_reply_json(x, 200, doc, err);
}

/* ---- diff ---- */

struct diff_request {
    const char *from, *to;
};

static int reply_diff(struct http_exchange *x, const struct route_params *params,
                      const struct api_call *call, const struct diff_request *request,
                      struct error *err)
{
    struct arena *arena = http_arena(x);
    struct history_diff diff;
    if (history_diff(call->api->sandboxes, call->workspace, route_param(params, "name"),
                     request->from, request->to, arena, &diff, err) < 0)
        return history_refused(x, err);
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "fromExecId", diff.from);
    yyjson_mut_obj_add_str(doc, root, "toExecId", diff.to);
    history_diff_json(doc, root, &diff);
    return api_reply_json(x, 200, doc, err);
}

int v0_history_diff_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    struct diff_request request = {0};
    if (http_query(x, "from", &request.from, err) < 0 || http_query(x, "to", &request.to, err) < 0)
        return -1;
    return reply_diff(x, params, ctx, &request, err);
}

int v0_history_diff(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    static const struct json_field fields[] = {
        {"fromExecId", JSON_STRING, false, offsetof(struct diff_request, from)},
        {"toExecId", JSON_STRING, false, offsetof(struct diff_request, to)},
    };
    struct diff_request request = {0};
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        (body != NULL &&
         json_read(http_arena(x), body, "", fields, ARRAY_LEN(fields), &request, err) < 0))
        return -1;
    return reply_diff(x, params, ctx, &request, err);
}

/* ---- rollback ---- */

struct rollback_request {
    const char *execution;
};

int v0_history_rollback(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    static const struct json_field fields[] = {
        {"executionId", JSON_STRING, true, offsetof(struct rollback_request, execution)},
    };
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct rollback_request request = {0};
    struct history_rollback done;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0)
        return -1;
    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "executionId is missing: {\"executionId\": \"exec_7683de5a\"}");
    if (json_read(arena, body, "", fields, ARRAY_LEN(fields), &request, err) < 0 ||
        history_rollback(call->api->sandboxes, call->workspace, route_param(params, "name"),
                         request.execution, arena, &done, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "status", done.left_total == 0 ? "success" : "partial");
    history_rollback_json(doc, root, &done);
    return api_reply_json(x, 200, doc, err);
}
