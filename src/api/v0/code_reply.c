/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The answer to a run: its events as they come (JSON lines, server-sent events), or all of them in
 * one JSON object at the end. What an answer in one piece can hold is limited, and says when it is
 * not all; a stream holds nothing.
 */

#include <stdio.h>
#include <string.h>

#include "api/code_json.h"
#include "api/record.h"
#include "api/v0/code.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/timetext.h"
#include "sandbox/history.h"

enum { VALUE_COST = 128 }; /* in bytes, of a member of a JSON object */

struct code_reply {
    struct http_exchange *x;
    enum code_shape shape;
    struct code_text text[2]; /* stdout, stderr */
    int64_t started_ms;
    uint64_t count;
    unsigned status;
    char execution[EXECUTION_ID_SIZE];
    /* of an answer in one piece */
    struct buf output[2];
    size_t size; /* of all that is in it */
    bool truncated;
    yyjson_mut_doc *doc;
    yyjson_mut_val *results, *error;
};

int code_shape(struct http_exchange *x, enum code_shape *ret_shape, struct error *err)
{
    bool stream = false;
    if (api_query_bool(x, "stream", false, &stream, err) < 0)
        return -1;
    if (http_accepts(x, "text/event-stream"))
        *ret_shape = CODE_EVENTS;
    else if (stream || http_accepts(x, "application/x-ndjson"))
        *ret_shape = CODE_LINES;
    else
        *ret_shape = CODE_ONE_ANSWER;
    return 0;
}

struct code_reply *code_reply_new(struct http_exchange *x, enum code_shape shape)
{
    struct code_reply *r = arena_alloc(http_arena(x), sizeof(*r));
    r->x = x;
    r->shape = shape;
    r->started_ms = loop_now(http_loop(x));
    for (int i = 0; i < 2; i++) {
        buf_init(&r->output[i], CODE_ANSWER_MAX);
        r->output[i].account = http_memory(x);
    }
    if (shape == CODE_ONE_ANSWER) {
        r->doc = json_doc(http_arena(x));
        r->results = yyjson_mut_arr(r->doc);
    }
    return r;
}

void code_reply_free(struct code_reply *r)
{
    buf_release(&r->output[0]);
    buf_release(&r->output[1]);
}

static void error_json(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct code_event *event)
{
    json_add_lossy(doc, object, "name", event->name);
    json_add_lossy(doc, object, "value", event->value);
    json_add_lossy(doc, object, "traceback", event->traceback);
}

/* --- streams --- */

static int send_object(struct code_reply *r, const char *type, struct arena *arena,
                       const yyjson_mut_doc *doc, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(8 * (size_t)CODE_FRAME_MAX);
    struct slice text = json_write(arena, doc, false);
    if (r->shape == CODE_EVENTS)
        buf_addf(&out, "event: %s\ndata: ", type);
    buf_add(&out, text.data, text.len);
    buf_adds(&out, r->shape == CODE_EVENTS ? "\n\n" : "\n");
    if (buf_check(&out, "an event", err) < 0)
        return -1;
    if (!http_started(r->x)) {
        http_set_header(r->x, "Cache-Control", "no-cache");
        if (http_reply_start(r->x, 200,
                             r->shape == CODE_EVENTS ? "text/event-stream" : "application/x-ndjson",
                             -1, err) < 0)
            return -1;
    }
    return http_reply_write(r->x, out.data, out.len, err);
}

static int send_event(struct code_reply *r, const char *type, const struct code_event *event,
                      struct slice text, struct error *err)
{
    struct arena *arena = arena_new_for(http_memory(r->x));
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_obj_add_str(doc, root, "type", type);
    if (event->kind == CODE_STDOUT || event->kind == CODE_STDERR) {
        json_add_lossy(doc, root, "text", text);
        yyjson_mut_obj_add_uint(doc, root, "timestamp", (uint64_t)time_now_ms());
    } else if (event->kind == CODE_RESULT) {
        yyjson_mut_obj_add_bool(doc, root, "isMainResult", event->is_main);
        code_items_json(doc, root, event);
    } else if (event->kind == CODE_ERROR) {
        error_json(doc, root, event);
    } else if (event->kind == CODE_DROPPED) {
        yyjson_mut_obj_add_uint(doc, root, "bytes", event->dropped);
    } else if (event->kind == CODE_END) {
        yyjson_mut_obj_add_uint(doc, root, "exitCode", event->status);
        yyjson_mut_obj_add_uint(doc, root, "executionCount", event->count);
        yyjson_mut_obj_add_str(doc, root, "executionId", event->execution);
    }
    int rc = send_object(r, type, arena, doc, err);
    arena_free(arena);
    return rc;
}

static const char *const type_names[] = {
    [CODE_STDOUT] = "stdout", [CODE_STDERR] = "stderr",   [CODE_RESULT] = "result",
    [CODE_ERROR] = "error",   [CODE_DROPPED] = "dropped", [CODE_IDLE] = "keepalive",
    [CODE_END] = "end",
};

/* Half a character that nothing follows any more. */
static int send_rest(struct code_reply *r, enum code_event_kind kind, struct error *err)
{
    const struct code_event event = {.kind = kind};
    struct slice rest = code_text_end(&r->text[kind]);
    return rest.len == 0 ? 0 : send_event(r, type_names[kind], &event, rest, err);
}

static int stream(struct code_reply *r, const struct code_event *event, struct error *err)
{
    struct arena *arena = arena_new_for(http_memory(r->x));
    struct slice text = {0};
    int rc = 0;
    if (event->kind == CODE_STDOUT || event->kind == CODE_STDERR) {
        text = code_text_add(&r->text[event->kind], arena, event->text);
        if (text.len == 0)
            goto out;
    } else if (event->kind == CODE_END &&
               (send_rest(r, CODE_STDOUT, err) < 0 || send_rest(r, CODE_STDERR, err) < 0)) {
        rc = -1;
        goto out;
    }
    rc = send_event(r, type_names[event->kind], event, text, err);
out:
    arena_free(arena);
    return rc;
}

/* --- one answer --- */

/* With what it takes to keep it: many small things are much, too. */
static size_t size_of(const struct code_event *event)
{
    size_t size = event->name.len + event->value.len + event->traceback.len + event->text.len;
    if (event->kind != CODE_STDOUT && event->kind != CODE_STDERR)
        size += VALUE_COST;
    for (size_t i = 0; i < event->item_count; i++)
        size += VALUE_COST + strlen(event->items[i].format) + event->items[i].value.len;
    return size;
}

static void collect(struct code_reply *r, const struct code_event *event)
{
    size_t size = size_of(event);
    if (event->kind == CODE_DROPPED)
        r->truncated = true;
    if (event->kind == CODE_IDLE || event->kind == CODE_DROPPED || event->kind == CODE_END)
        return;
    if (r->size + size > CODE_ANSWER_MAX && event->kind != CODE_ERROR) {
        r->truncated = true;
        return;
    }
    r->size += size;
    if (event->kind == CODE_STDOUT || event->kind == CODE_STDERR) {
        buf_add(&r->output[event->kind], event->text.data, event->text.len);
    } else if (event->kind == CODE_ERROR) {
        r->error = yyjson_mut_obj(r->doc);
        error_json(r->doc, r->error, event);
    } else {
        yyjson_mut_val *result = yyjson_mut_arr_add_obj(r->doc, r->results);
        yyjson_mut_obj_add_bool(r->doc, result, "isMainResult", event->is_main);
        code_items_json(r->doc, result, event);
    }
}

/* The text of the main result, and the first picture: what most callers look for. */
static void add_summary(struct code_reply *r, yyjson_mut_val *root)
{
    static const char *const keys[] = {"html", "png", "jpeg", "svg", "markdown", "latex"};
    size_t index, max;
    yyjson_mut_val *result;
    yyjson_mut_arr_foreach(r->results, index, max, result)
    {
        yyjson_mut_val *text = yyjson_mut_obj_get(result, "text");
        if (text != NULL && yyjson_mut_get_bool(yyjson_mut_obj_get(result, "isMainResult")))
            yyjson_mut_obj_add_strn(r->doc, root, "text", yyjson_mut_get_str(text),
                                    yyjson_mut_get_len(text));
        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
            yyjson_mut_val *value = yyjson_mut_obj_get(result, keys[i]);
            if (value != NULL && yyjson_mut_obj_get(root, keys[i]) == NULL)
                yyjson_mut_obj_add_strn(r->doc, root, keys[i], yyjson_mut_get_str(value),
                                        yyjson_mut_get_len(value));
        }
    }
}

yyjson_mut_val *code_reply_object(struct code_reply *r, yyjson_mut_doc **ret_doc)
{
    yyjson_mut_val *root = yyjson_mut_obj(r->doc);
    json_add_lossy(r->doc, root, "stdout", (struct slice){r->output[0].data, r->output[0].len});
    json_add_lossy(r->doc, root, "stderr", (struct slice){r->output[1].data, r->output[1].len});
    yyjson_mut_obj_add_int(r->doc, root, "exitCode", r->status);
    yyjson_mut_obj_add_val(r->doc, root, "error",
                           r->error == NULL ? yyjson_mut_null(r->doc) : r->error);
    add_summary(r, root);
    yyjson_mut_obj_add_val(r->doc, root, "results", r->results);
    yyjson_mut_obj_add_uint(r->doc, root, "executionCount", r->count);
    yyjson_mut_obj_add_str(r->doc, root, "executionId", r->execution);
    yyjson_mut_obj_add_int(r->doc, root, "durationMs", loop_now(http_loop(r->x)) - r->started_ms);
    yyjson_mut_obj_add_bool(r->doc, root, "truncated", r->truncated);
    *ret_doc = r->doc;
    return root;
}

static int reply_whole(struct code_reply *r, struct error *err)
{
    yyjson_mut_doc *doc;
    yyjson_mut_doc_set_root(r->doc, code_reply_object(r, &doc));
    return api_reply_json(r->x, 200, doc, err);
}

/* --- */

int code_reply_listen(void *ctx, const struct code_event *event, struct error *err)
{
    struct code_reply *r = ctx;
    if (event->kind == CODE_END) {
        r->count = event->count;
        r->status = event->status;
        snprintf(r->execution, sizeof(r->execution), "%s", event->execution);
    }
    if (r->shape != CODE_ONE_ANSWER)
        return stream(r, event, err);
    collect(r, event);
    return 0;
}

int code_reply_end(struct code_reply *r, struct error *err)
{
    return r->shape == CODE_ONE_ANSWER ? reply_whole(r, err) : http_reply_end(r->x, err);
}

int code_reply_fail(struct code_reply *r, struct error *err)
{
    struct error why = *err;
    if (r->shape == CODE_ONE_ANSWER || !http_started(r->x) || !http_can_tell(r->x, &why))
        return -1;
    record_failure(r->x, &why);
    const struct code_event event = {
        .kind = CODE_ERROR, .name = slice_of(error_name(why.code)), .value = slice_of(why.message)};
    if (send_rest(r, CODE_STDOUT, err) < 0 || send_rest(r, CODE_STDERR, err) < 0 ||
        send_event(r, type_names[CODE_ERROR], &event, (struct slice){0}, err) < 0)
        return -1;
    return http_reply_end(r->x, err);
}
