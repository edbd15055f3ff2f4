/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /sandbox/{name}/logs: what befell a sandbox and what its processes wrote, line by line. Followed,
 * it is the same entries one by one, as lines of JSON or as server-sent events.
 */

#include "api/handlers.h"
#include "api/json_stream.h"

#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/log_stream.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/limits.h"
#include "sandbox/logs.h"
#include "wire/messages.h"

enum {
    TAIL_DEFAULT = 100,
    BATCH_MAX = 64 << 20, /* entries of one look: at worst every byte becomes six, and base64 */
};

/* --- what is asked for --- */

static int query_source(struct http_exchange *x, unsigned *ret_sources, struct error *err)
{
    const char *text = NULL;
    if (http_query(x, "source", &text, err) < 0)
        return -1;
    bool sandbox = text != NULL && strcmp(text, "sandbox") == 0;
    bool process = text != NULL && strcmp(text, "process") == 0;
    if (text != NULL && !sandbox && !process)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "source: \"%.40s\" is neither sandbox nor process", text);
    *ret_sources = sandbox ? SANDBOX_LOG_OF_SANDBOX : process ? SANDBOX_LOG_OF_PROCESSES : 0;
    return 0;
}

static int read_query(struct http_exchange *x, struct sandbox_log_query *ret_query,
                      bool *ret_follow, struct error *err)
{
    struct sandbox_log_query query = {.level = SANDBOX_LOG_DEBUG};
    const char *level = NULL;
    uint64_t tail;
    if (api_query_uint(x, "tail", 0, LOGS_TAIL_MAX, TAIL_DEFAULT, &tail, err) < 0 ||
        http_query(x, "level", &level, err) < 0 || api_query_since(x, &query.since_ms, err) < 0 ||
        query_source(x, &query.sources, err) < 0 ||
        api_query_bool(x, "follow", false, ret_follow, err) < 0)
        return -1;
    if (level != NULL && sandbox_log_level_parse(level, &query.level, err) < 0)
        return -1;
    query.tail = tail;
    *ret_query = query;
    return 0;
}

/* --- entries --- */

static void entry_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *item,
                       const struct sandbox_log_entry *entry)
{
    char time[TIME_TEXT_SIZE];
    time_rfc3339(entry->time_ms, time);
    yyjson_mut_obj_add_strcpy(doc, item, "timestamp", time);
    yyjson_mut_obj_add_str(doc, item, "level", sandbox_log_level_text(entry->level));
    api_add_text(arena, doc, item, "message", "messageBase64", entry->message);
    yyjson_mut_obj_add_str(doc, item, "source", entry->pid == 0 ? "sandbox" : "process");
    yyjson_mut_obj_add_sint(doc, item, "unixMs", entry->time_ms);
    if (entry->pid == 0)
        return;
    yyjson_mut_obj_add_uint(doc, item, "pid", entry->pid);
    if (entry->process != NULL)
        json_add_lossy(doc, item, "process", slice_of(entry->process));
    yyjson_mut_obj_add_str(doc, item, "stream", entry->stream == LOG_STDERR ? "stderr" : "stdout");
}

static int next_entries(void *reader, struct arena *arena, bool events, struct buf *out,
                        bool *ret_ended, struct error *err)
{
    struct sandbox_log_entry *entries = NULL;
    size_t count = 0;
    if (sandbox_log_next(reader, LOG_STREAM_KEEPALIVE_MS, arena, &entries, &count, ret_ended, err) <
        0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *root;
        yyjson_mut_doc *doc = api_json_new(arena, &root);
        entry_json(arena, doc, root, &entries[i]);
        log_stream_add(arena, doc, events, out);
    }
    return 0;
}

static int follow(struct http_exchange *x, const struct api_call *call, const char *name,
                  const struct sandbox_log_query *query, struct error *err)
{
    _cleanup_(cleanup_sandbox_log) struct sandbox_log_reader *reader = NULL;
    if (sandbox_log_follow(call->api->sandboxes, call->workspace, name, query, &reader, err) < 0)
        return -1;
    return log_stream_send(x, next_entries, reader, BATCH_MAX, err);
}

static int reply_entries(struct http_exchange *x, const struct sandbox_log_entry *entries,
                         size_t count, struct error *err)
{
    _cleanup_json_stream_ struct json_stream out = {0};
    json_stream_begin(&out, x);
    json_stream_array(&out, "logs");
    for (size_t i = 0; i < count; i++) {
        yyjson_mut_val *item;
        yyjson_mut_doc *doc = json_stream_item(&out, &item);
        entry_json(json_stream_arena(&out), doc, item, &entries[i]);
        if (json_stream_add(&out, doc, err) < 0)
            return -1;
    }
    json_stream_array_end(&out);
    return json_stream_end(&out, err);
}

int v0_sandbox_logs(struct http_exchange *x, const struct route_params *params, void *ctx,
                    struct error *err)
{
    const struct api_call *call = ctx;
    const char *name = route_param(params, "name");
    struct arena *arena = http_arena(x);
    struct sandbox_log_query query;
    struct sandbox_log_entry *entries = NULL;
    size_t count = 0;
    bool follows = false;
    if (read_query(x, &query, &follows, err) < 0)
        return -1;
    if (follows && strcmp(http_request(x)->method, "HEAD") != 0) /* whose answer has an end */
        return follow(x, call, name, &query, err);
    if (sandbox_logs(call->api->sandboxes, call->workspace, name, &query, arena, &entries, &count,
                     err) < 0)
        return -1;
    return reply_entries(x, entries, count, err);
}
