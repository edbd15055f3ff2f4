/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Running code: ExecutionService's stream, and the control plane's /execute, which answers in one
 * piece. The client takes a run for good only when it was told a main result, whether there was a
 * value or not, and looks for the count of runs in it; the count is known at the end. So the main
 * result is kept until then, and an empty one stands for none.
 */

#include <string.h>

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/code_json.h"
#include "api/connect/connect.h"
#include "api/connect/service.h"
#include "api/e2b/sandbox_json.h"
#include "api/scalebox/chart_json.h"
#include "api/scalebox/contexts.h"
#include "api/scalebox/door.h"
#include "api/scalebox/handlers.h"
#include "api/scalebox/sandbox_json.h"
#include "api/v0/code.h"
#include "api/v0/env.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "code/code.h"
#include "sandbox/history.h"

struct execution {
    struct connect_stream stream;
    char id[EXECUTION_ID_SIZE]; /* history's */
    bool started;
    bool failed; /* the code itself has */
    int64_t started_ms;
    struct code_text text[2]; /* stdout, stderr */
    struct arena *arena;      /* of … */
    yyjson_mut_doc *main;     /* the main result, until the end; NULL: none yet */
};

static int send_message(struct execution *e, const yyjson_mut_doc *doc, struct error *err)
{
    if (!e->started) {
        api_tell_execution(e->stream.x, e->id);
        if (connect_stream_start(&e->stream, err) < 0)
            return -1;
    }
    e->started = true;
    return connect_stream_send(&e->stream, doc, err);
}

static int send_output(struct execution *e, const char *name, struct slice text, struct error *err)
{
    if (text.len == 0)
        return 0;
    struct arena *arena = arena_new();
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    json_add_lossy(doc, yyjson_mut_obj_add_obj(doc, root, name), "content", text);
    int rc = send_message(e, doc, err);
    arena_free(arena);
    return rc;
}

/* All but charts are texts here, JSON too. */
static void add_item(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *result,
                     const struct code_item *item)
{
    static const char *const names[] = {"text", "html",  "markdown", "svg",        "png", "jpeg",
                                        "pdf",  "latex", "json",     "javascript", "data"};
    const char *format = yyjson_mut_get_str(yyjson_mut_strcpy(doc, item->format));
    yyjson_val *chart;
    if (strcmp(format, "chart") == 0) {
        yyjson_mut_val *told = json_parse(arena, item->value, &chart, NULL) == 0
                                   ? scalebox_chart_json(doc, chart)
                                   : NULL;
        if (told != NULL)
            yyjson_mut_obj_add_val(doc, result, "chart", told);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], format) == 0) {
            json_add_lossy(doc, result, names[i], item->value);
            return;
        }
    yyjson_mut_val *extra = yyjson_mut_obj_get(result, "extra");
    if (extra == NULL)
        extra = yyjson_mut_obj_add_obj(doc, result, "extra");
    json_add_lossy(doc, extra, format, item->value);
}

static yyjson_mut_doc *result_doc(struct arena *arena, const struct code_event *event, bool is_main)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *result = yyjson_mut_obj_add_obj(doc, root, "result");
    yyjson_mut_obj_add_bool(doc, result, "isMainResult", is_main);
    for (size_t i = 0; event != NULL && i < event->item_count; i++)
        add_item(arena, doc, result, &event->items[i]);
    return doc;
}

static int take_result(struct execution *e, const struct code_event *event, struct error *err)
{
    if (event->is_main && e->main == NULL) {
        e->main = result_doc(e->arena, event, true);
        return 0;
    }
    struct arena *arena = arena_new();
    int rc = send_message(e, result_doc(arena, event, false), err);
    arena_free(arena);
    return rc;
}

static int send_error(struct execution *e, const struct code_event *event, struct error *err)
{
    struct arena *arena = arena_new();
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, root, "error");
    json_add_lossy(doc, object, "name", event->name);
    json_add_lossy(doc, object, "value", event->value);
    json_add_lossy(doc, object, "traceback", event->traceback);
    e->failed = true;
    int rc = send_message(e, doc, err);
    arena_free(arena);
    return rc;
}

static int finish(struct execution *e, const struct code_event *event, struct error *err)
{
    if (send_output(e, "stdout", code_text_end(&e->text[0]), err) < 0 ||
        send_output(e, "stderr", code_text_end(&e->text[1]), err) < 0)
        return -1;
    if (e->failed)
        return 0;
    if (e->main == NULL)
        e->main = result_doc(e->arena, NULL, true);
    yyjson_mut_val *result = yyjson_mut_obj_get(yyjson_mut_doc_get_root(e->main), "result");
    yyjson_mut_obj_add_int(e->main, result, "exitCode", 0);
    yyjson_mut_obj_add_uint(e->main, result, "executionCount", event->count);
    scalebox_add_time(e->main, result, "startedAt", e->started_ms);
    scalebox_add_time(e->main, result, "finishedAt", time_now_ms());
    return send_message(e, e->main, err);
}

static int hear(void *ctx, const struct code_event *event, struct error *err)
{
    struct execution *e = ctx;
    if (event->kind == CODE_STDOUT || event->kind == CODE_STDERR) {
        bool out = event->kind == CODE_STDOUT;
        struct arena *arena = arena_new();
        struct slice text = code_text_add(&e->text[out ? 0 : 1], arena, event->text);
        int rc = send_output(e, out ? "stdout" : "stderr", text, err);
        arena_free(arena);
        return rc;
    }
    switch (event->kind) {
    case CODE_RESULT:
        return take_result(e, event, err);
    case CODE_ERROR:
        return send_error(e, event, err);
    case CODE_END:
        return finish(e, event, err);
    default:
        return 0;
    }
}

/* A context that the client has made up by itself ("ctx_…") lives in the language's own. */
static bool is_made_up(const char *context)
{
    return strncmp(context, "ctx_", 4) == 0;
}

/* How the stream and the control plane call the same things. */
struct run_words {
    const char *context, *env;
};

static int read_run(struct http_exchange *x, yyjson_val *message, const char *sandbox,
                    const struct run_words *words, struct code_run *ret_run, struct error *err)
{
    struct code_run run = {0};
    const char *context = NULL, *language = NULL, *code = NULL;
    yyjson_val *env = NULL;
    if (scalebox_text(message, words->context, &context, err) < 0 ||
        scalebox_text(message, "language", &language, err) < 0 ||
        member_text(message, "", "code", &code, err) < 0 ||
        member_object(message, "", words->env, &env, err) < 0 ||
        env_from_json(http_arena(x), env, words->env, &run.env, err) < 0)
        return -1;
    run.code = slice_of(code == NULL ? "" : code);
    if (context == NULL || is_made_up(context))
        run.language = language;
    else if (scalebox_context_id(sandbox, context, &run.context, err) < 0)
        return -1;
    *ret_run = run;
    return 0;
}

static int execute_method(struct http_exchange *x, const struct connect_box *box,
                          yyjson_val *message, struct error *err)
{
    static const struct run_words words = {"contextId", "envVars"};
    struct code *code = box->api->code;
    struct execution e = {.started_ms = time_now_ms(), .arena = http_arena(x)};
    struct code_run run;
    struct error why = {0};
    const struct code_place place = {box->workspace, box->sandbox, box->actor};
    if (read_run(x, message, box->sandbox, &words, &run, err) < 0 ||
        connect_stream_init(&e.stream, x, err) < 0 ||
        (run.context == NULL && scalebox_make_room(code, &place, err) < 0))
        return -1;
    history_run_begin(e.id);
    run.execution = e.id;
    run.timeout_ms = e.stream.deadline_ms < 0 ? 0 : e.stream.deadline_ms - loop_now(http_loop(x));
    if (code_run(code, &place, &run, hear, &e, &why) < 0) {
        if (e.started)
            return connect_stream_fail(&e.stream, &why, err);
        *err = why;
        return -1;
    }
    return connect_stream_end(&e.stream, NULL, err);
}

int scalebox_execution(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    static const struct connect_method methods[] = {{"Execute", CONNECT_STREAM, execute_method}};
    const struct api_call *call = ctx;
    struct connect_box box;
    if (scalebox_box(x, call->api, &box, err) < 0)
        return -1;
    return connect_serve(x, &box, "ExecutionService", methods, ARRAY_LEN(methods),
                         route_param(params, "method"), err);
}

/* --- the control plane --- */

/* "default" is what the client says that knows of no sandbox. */
static int find_sandbox(struct http_exchange *x, const struct api_call *call, const char *name,
                        struct sandbox_info *ret_info, struct error *err)
{
    if (e2b_sandbox_find(x, call, name, ret_info, err) == 0)
        return 0;
    if (strcmp(name, "default") != 0 || err->code != ERROR_SANDBOX_NOT_FOUND ||
        scalebox_only_sandbox(x, call, &name, err) < 0)
        return -1;
    return e2b_sandbox_find(x, call, name, ret_info, err);
}

int scalebox_execute(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    static const struct run_words words = {"context_id", "env_vars"};
    const struct api_call *call = ctx;
    struct sandbox_info info;
    struct code_run run;
    yyjson_val *body;
    uint64_t timeout_s = 0;
    if (api_json_body(x, &body, err) < 0 ||
        find_sandbox(x, call, route_param(params, "name"), &info, err) < 0 ||
        read_run(x, body, info.id, &words, &run, err) < 0 ||
        member_uint(body, "", "timeout", 0, CODE_TIME_MAX_S, &timeout_s, err) < 0)
        return -1;
    if (yyjson_obj_get(body, "code") == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "code is required");
    run.timeout_ms = (int64_t)timeout_s * 1000;
    const struct code_place place = {call->workspace, info.id, call->principal.name};
    if (run.context == NULL && scalebox_make_room(call->api->code, &place, err) < 0)
        return -1;
    struct code_reply *reply = code_reply_new(x, CODE_ONE_ANSWER);
    int rc = code_run(call->api->code, &place, &run, code_reply_listen, reply, err);
    if (rc == 0) {
        yyjson_mut_doc *doc;
        yyjson_mut_val *data = code_reply_object(reply, &doc), *root = yyjson_mut_obj(doc);
        yyjson_mut_doc_set_root(doc, root);
        yyjson_mut_obj_add_bool(doc, root, "success", true);
        yyjson_mut_obj_add_val(doc, root, "data", data);
        rc = api_reply_json(x, 200, doc, err);
    }
    code_reply_free(reply);
    return rc;
}
