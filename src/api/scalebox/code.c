/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ContextService and ExecutionService. The client takes a run for good only when it was told a main
 * result, whether there was a value or not, and looks for the count of runs in it; the count is
 * known at the end. So the main result is kept until then, and an empty one stands for none.
 */

#include <string.h>

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/code_json.h"
#include "api/connect/connect.h"
#include "api/scalebox/chart_json.h"
#include "api/scalebox/door.h"
#include "api/scalebox/handlers.h"
#include "api/v0/env.h"
#include "base/cleanup.h"
#include "code/code.h"

static struct code_place place_of(const struct connect_box *box)
{
    return (struct code_place){box->workspace, box->sandbox, box->actor};
}

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t ms)
{
    char text[TIME_TEXT_SIZE];
    time_rfc3339(ms, text);
    yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

/* An empty text is how the protocol says that there is none. */
static int text_of(yyjson_val *message, const char *name, const char **ret, struct error *err)
{
    if (member_text(message, "", name, ret, err) < 0)
        return -1;
    if (*ret != NULL && **ret == '\0')
        *ret = NULL;
    return 0;
}

/* --- contexts --- */

static int create_method(struct http_exchange *x, const struct connect_box *box,
                         yyjson_val *message, struct error *err)
{
    struct code_context_request request = {.user = box->user};
    struct code_place place = place_of(box);
    struct code_context context;
    if (text_of(message, "language", &request.language, err) < 0 ||
        text_of(message, "cwd", &request.cwd, err) < 0 ||
        code_context_create(box->api->code, &place, &request, http_arena(x), &context, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "id", context.id);
    yyjson_mut_obj_add_str(doc, root, "language", context.language);
    json_add_lossy(doc, root, "cwd", slice_of(context.cwd));
    add_time(doc, root, "createdAt", (int64_t)context.started_ms);
    yyjson_mut_obj_add_obj(doc, root, "envVars");
    return connect_reply(x, doc, err);
}

static int destroy_method(struct http_exchange *x, const struct connect_box *box,
                          yyjson_val *message, struct error *err)
{
    struct code_place place = place_of(box);
    const char *id = NULL;
    if (text_of(message, "contextId", &id, err) < 0)
        return -1;
    if (id == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "contextId is required");
    if (code_context_delete(box->api->code, &place, id, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_bool(doc, root, "success", true);
    return connect_reply(x, doc, err);
}

int scalebox_context(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    static const struct {
        const char *name;
        int (*serve)(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                     struct error *err);
    } methods[] = {{"CreateContext", create_method}, {"DestroyContext", destroy_method}};
    const struct api_call *call = ctx;
    struct connect_box box;
    yyjson_val *message;
    if (scalebox_box(x, call->api, &box, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].name, route_param(params, "method")) == 0)
            return connect_request(x, &message, err) < 0 ? -1
                                                         : methods[i].serve(x, &box, message, err);
    return error_set(err, ERROR_ROUTE_NOT_FOUND, "ContextService has no method \"%.60s\"",
                     route_param(params, "method"));
}

/* --- runs --- */

struct execution {
    struct connect_stream stream;
    bool started;
    bool failed; /* the code itself has */
    int64_t started_ms;
    struct code_text text[2]; /* stdout, stderr */
    struct arena *arena;      /* of … */
    yyjson_mut_doc *main;     /* the main result, until the end; NULL: none yet */
};

static int send_message(struct execution *e, const yyjson_mut_doc *doc, struct error *err)
{
    if (!e->started && connect_stream_start(&e->stream, err) < 0)
        return -1;
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
    add_time(e->main, result, "startedAt", e->started_ms);
    add_time(e->main, result, "finishedAt", time_now_ms());
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

static int read_run(struct http_exchange *x, yyjson_val *message, struct code_run *ret_run,
                    struct error *err)
{
    struct code_run run = {0};
    const char *context = NULL, *language = NULL, *code = NULL;
    yyjson_val *env = NULL;
    if (text_of(message, "contextId", &context, err) < 0 ||
        text_of(message, "language", &language, err) < 0 ||
        member_text(message, "", "code", &code, err) < 0 ||
        member_object(message, "", "envVars", &env, err) < 0 ||
        env_from_json(http_arena(x), env, "envVars", &run.env, err) < 0)
        return -1;
    run.code = slice_of(code == NULL ? "" : code);
    if (context != NULL && !is_made_up(context))
        run.context = context;
    else
        run.language = language;
    *ret_run = run;
    return 0;
}

int scalebox_execution(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    struct code_run run;
    struct execution e = {.started_ms = time_now_ms(), .arena = http_arena(x)};
    yyjson_val *message;
    if (strcmp(route_param(params, "method"), "Execute") != 0)
        return error_set(err, ERROR_ROUTE_NOT_FOUND, "ExecutionService has no method \"%.60s\"",
                         route_param(params, "method"));
    if (scalebox_box(x, call->api, &box, err) < 0 || connect_request(x, &message, err) < 0 ||
        read_run(x, message, &run, err) < 0 || connect_stream_init(&e.stream, x, err) < 0)
        return -1;
    struct code_place place = place_of(&box);
    struct error why = {0};
    run.timeout_ms = e.stream.deadline_ms < 0 ? 0 : e.stream.deadline_ms - loop_now(http_loop(x));
    if (code_run(call->api->code, &place, &run, hear, &e, &why) < 0) {
        if (e.started)
            return connect_stream_end(&e.stream, &why, err);
        *err = why;
        return -1;
    }
    return connect_stream_end(&e.stream, NULL, err);
}
