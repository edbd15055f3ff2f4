/* SPDX-License-Identifier: Apache-2.0 */

/* What executions changed in a container, what differs between two of them, and the way back. */

#include <string.h>

#include "api/aisandbox/door.h"
#include "api/aisandbox/handlers.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/history.h"

enum { PAGE_DEFAULT = 100 };

/* "2025-05-13T10:15:30+00:00" */
static void add_time(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const char *key, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(ms, text);
    size_t len = strcspn(text, "Z");
    yyjson_mut_obj_add_str(doc, object, key, arena_printf(arena, "%.*s+00:00", (int)len, text));
}

/* Paths are bytes, and need not be UTF-8. */
static void add_files(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct slice *files,
                      size_t count, bool cut)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, "files");
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_append(list, json_lossy(doc, files[i]));
    if (cut)
        yyjson_mut_obj_add_bool(doc, object, "filesTruncated", true);
}

int aisandbox_history(struct http_exchange *x, const struct route_params *params, void *ctx,
                      struct error *err)
{
    const struct api_call *call = ctx;
    struct arena *arena = http_arena(x);
    struct sandbox_info info;
    struct history_page page;
    uint64_t limit, offset;
    if (api_query_uint(x, "limit", 1, HISTORY_PAGE_MAX, PAGE_DEFAULT, &limit, err) < 0 ||
        api_query_uint(x, "offset", 0, UINT32_MAX, 0, &offset, err) < 0 ||
        aisandbox_find(x, call, route_param(params, "name"), &info, err) < 0 ||
        history_list(call->api->sandboxes, call->workspace, info.id, limit, offset, arena, &page,
                     err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "history");
    for (size_t i = 0; i < page.count; i++) {
        const struct history_commit *commit = &page.commits[i];
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_str(doc, item, "id", commit->id);
        yyjson_mut_obj_add_str(doc, item, "commitId", commit->commit);
        add_time(arena, doc, item, "timestamp", commit->time_ms);
        json_add_lossy(doc, item, "message", slice_of(commit->message));
        add_files(doc, item, commit->files, commit->file_count, commit->files_cut);
    }
    if (page.more)
        yyjson_mut_obj_add_bool(doc, root, "more", true);
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
        aisandbox_find(x, call, route_param(params, "name"), &info, err) < 0 ||
        history_diff(call->api->sandboxes, call->workspace, info.id, body.from, body.to, arena,
                     &diff, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *files = yyjson_mut_obj_add_obj(doc, root, "diff");
    bool cut = diff.cut;
    for (size_t i = 0; i < diff.count; i++) {
        yyjson_mut_obj_add(files, json_lossy(doc, diff.files[i].path),
                           json_lossy(doc, diff.files[i].text));
        cut = cut || diff.files[i].cut;
    }
    if (cut)
        yyjson_mut_obj_add_bool(doc, root, "truncated", true);
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
    yyjson_mut_obj_add_str(doc, root, "status", "success");
    yyjson_mut_obj_add_str(doc, root, "containerId", aisandbox_id(arena, &info));
    yyjson_mut_obj_add_strcpy(doc, root, "id", done.execution);
    yyjson_mut_obj_add_str(doc, root, "executionId", done.target);
    yyjson_mut_obj_add_str(doc, root, "commitId", done.commit);
    if (done.saved != NULL)
        yyjson_mut_obj_add_str(doc, root, "savedAs", done.saved);
    add_files(doc, root, done.files, done.file_count, done.files_cut);
    return api_reply_json(x, 200, doc, err);
}
