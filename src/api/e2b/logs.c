/* SPDX-License-Identifier: Apache-2.0 */

/* A sandbox's log: what its processes wrote, and what befell it. Two generations of shapes. */

#include "sandbox/logs.h"

#include "api/call.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "base/limits.h"

enum { LINES_DEFAULT = 1000 };

static int read_logs(struct http_exchange *x, const struct api_call *call, const char *id,
                     const char *since, struct sandbox_log_entry **ret_entries, size_t *ret_count,
                     struct error *err)
{
    struct sandbox_info info;
    struct sandbox_log_query query = {.level = SANDBOX_LOG_INFO};
    uint64_t limit, start;
    if (api_query_uint(x, "limit", 1, LOGS_TAIL_MAX, LINES_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, since, 0, INT64_MAX, 0, &start, err) < 0 ||
        e2b_sandbox_find(x, call, id, &info, err) < 0)
        return -1;
    query.tail = limit;
    query.since_ms = (int64_t)start;
    return sandbox_logs(call->api->sandboxes, call->workspace, info.id, &query, http_arena(x),
                        ret_entries, ret_count, err);
}

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, int64_t ms)
{
    char time[TIME_TEXT_SIZE];
    time_rfc3339(ms, time);
    yyjson_mut_obj_add_strcpy(doc, object, "timestamp", time);
}

/* {"logs": [{timestamp, line}], "logEntries": [{timestamp, level, message, fields}]} */
int e2b_sandbox_logs(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    struct sandbox_log_entry *entries;
    size_t count;
    if (read_logs(x, ctx, route_param(params, "name"), "start", &entries, &count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *logs = yyjson_mut_obj_add_arr(doc, root, "logs");
    yyjson_mut_val *structured = yyjson_mut_obj_add_arr(doc, root, "logEntries");
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *line = yyjson_mut_arr_add_obj(doc, logs);
        add_time(doc, line, entries[i].time_ms);
        json_add_lossy(doc, line, "line", entries[i].message);
        yyjson_mut_val *entry = yyjson_mut_arr_add_obj(doc, structured);
        add_time(doc, entry, entries[i].time_ms);
        yyjson_mut_obj_add_str(doc, entry, "level", sandbox_log_level_text(entries[i].level));
        json_add_lossy(doc, entry, "message", entries[i].message);
        yyjson_mut_obj_add_obj(doc, entry, "fields");
    }
    return api_reply_json(x, 200, doc, err);
}

/* {"logs": [{timestamp, level, message, fields}]} */
int e2b_sandbox_logs_v2(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    struct sandbox_log_entry *entries;
    size_t count;
    if (read_logs(x, ctx, route_param(params, "name"), "cursor", &entries, &count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *logs = yyjson_mut_obj_add_arr(doc, root, "logs");
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *entry = yyjson_mut_arr_add_obj(doc, logs);
        add_time(doc, entry, entries[i].time_ms);
        yyjson_mut_obj_add_str(doc, entry, "level", sandbox_log_level_text(entries[i].level));
        json_add_lossy(doc, entry, "message", entries[i].message);
        yyjson_mut_obj_add_obj(doc, entry, "fields");
    }
    return api_reply_json(x, 200, doc, err);
}
