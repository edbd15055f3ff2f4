/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The code interpreter (port 49999): runs as JSON lines, and contexts. Its clients expect code to
 * run as the user, at home, so the contexts that are there without being asked for are this
 * facade's own, made when they are first needed.
 */

#include "code/code.h"

#include <string.h>

#include "api/blaxel/members.h"
#include "api/call.h"
#include "api/code_json.h"
#include "api/e2b/door.h"
#include "api/e2b/handlers.h"
#include "api/e2b/sandbox_json.h"
#include "api/record.h"
#include "api/v0/env.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/history.h"

#define DEFAULT_PREFIX "e2b-"

enum { KEEPALIVE_MS = 20 * 1000, LINE_MAX_BYTES = 64 << 20 };

/* Listed from the start. */
static const char *const first_languages[] = {"python", "javascript"};

static struct code_place place_of(const struct connect_box *box)
{
    return (struct code_place){box->workspace, box->sandbox, box->actor};
}

/* --- contexts --- */

static const char *default_id(struct arena *arena, const char *language)
{
    return arena_printf(arena, DEFAULT_PREFIX "%s", language);
}

/* The language whose default context of this facade it is; NULL: of none. */
static const char *default_language(const char *id)
{
    size_t skip = sizeof(DEFAULT_PREFIX) - 1;
    const char *language = strncmp(id, DEFAULT_PREFIX, skip) == 0 ? code_language(id + skip) : NULL;
    return language != NULL && strcmp(language, id + skip) == 0 ? language : NULL;
}

static int make_default(struct http_exchange *x, const struct connect_box *box,
                        const char *language, struct error *err)
{
    const struct code_place place = place_of(box);
    const struct code_context_request request = {.id = default_id(http_arena(x), language),
                                                 .language = language,
                                                 .cwd = box->home,
                                                 .user = box->user};
    struct code_context made;
    return code_context_create(box->api->code, &place, &request, http_arena(x), &made, err);
}

static void add_context(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *id,
                        const char *language, const char *cwd)
{
    json_add_lossy(doc, object, "id", slice_of(id));
    yyjson_mut_obj_add_strcpy(doc, object, "language", language);
    json_add_lossy(doc, object, "cwd", slice_of(cwd));
}

int e2b_context_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    struct code_context *items;
    size_t count;
    if (e2b_box(x, call->api, E2B_NEEDS_TRAFFIC, "user", &box, err) < 0)
        return -1;
    const struct code_place place = place_of(&box);
    if (code_context_list(call->api->code, &place, http_arena(x), &items, &count, err) < 0)
        return -1;
    yyjson_mut_doc *doc = json_doc(http_arena(x));
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < ARRAY_LEN(first_languages); i++) {
        const char *id = default_id(http_arena(x), first_languages[i]);
        add_context(doc, yyjson_mut_arr_add_obj(doc, list), id, first_languages[i], box.home);
        for (size_t n = 0; n < count; n++)
            if (strcmp(items[n].id, id) == 0)
                items[n--] = items[--count];
    }
    for (size_t i = 0; i < count; i++)
        add_context(doc, yyjson_mut_arr_add_obj(doc, list), items[i].id, items[i].language,
                    items[i].cwd);
    return api_reply_json(x, 200, doc, err);
}

int e2b_context_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    struct code_context_request request = {0};
    struct code_context made;
    yyjson_val *body;
    if (e2b_box(x, call->api, E2B_NEEDS_TRAFFIC, "user", &box, err) < 0 ||
        api_json_body(x, &body, err) < 0 ||
        member_text(body, "", "language", &request.language, err) < 0 ||
        member_text(body, "", "cwd", &request.cwd, err) < 0 ||
        connect_path(&box, http_arena(x), request.cwd, &request.cwd, err) < 0)
        return -1;
    const struct code_place place = place_of(&box);
    request.user = box.user;
    if (code_context_create(call->api->code, &place, &request, http_arena(x), &made, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    add_context(doc, root, made.id, made.language, made.cwd);
    return api_reply_json(x, 200, doc, err);
}

/* One that is listed without having been used is made first. */
static int find_context(struct http_exchange *x, const struct connect_box *box, const char *id,
                        struct error *err)
{
    const struct code_place place = place_of(box);
    const char *language = default_language(id);
    struct code_context context;
    struct error why = {0};
    if (code_context_get(box->api->code, &place, id, http_arena(x), &context, &why) == 0)
        return 0;
    if (why.code == ERROR_CODE_CONTEXT_NOT_FOUND && language != NULL)
        return make_default(x, box, language, err);
    *err = why;
    return -1;
}

int e2b_context_restart(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    const char *id = route_param(params, "context");
    struct connect_box box;
    struct code_context context;
    if (e2b_box(x, call->api, E2B_NEEDS_TRAFFIC, "user", &box, err) < 0 ||
        find_context(x, &box, id, err) < 0)
        return -1;
    const struct code_place place = place_of(&box);
    if (code_context_restart(call->api->code, &place, id, http_arena(x), &context, err) < 0)
        return -1;
    return e2b_reply_nothing(x, err);
}

int e2b_context_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                       struct error *err)
{
    const struct api_call *call = ctx;
    struct connect_box box;
    if (e2b_box(x, call->api, E2B_NEEDS_TRAFFIC, "user", &box, err) < 0)
        return -1;
    const struct code_place place = place_of(&box);
    if (code_context_delete(call->api->code, &place, route_param(params, "context"), err) < 0)
        return -1;
    return e2b_reply_nothing(x, err);
}

/* --- runs --- */

struct execution {
    struct http_exchange *x;
    char id[EXECUTION_ID_SIZE]; /* history's */
    struct code_text text[2];   /* stdout, stderr */
};

static int send_line(struct execution *e, struct arena *arena, const yyjson_mut_doc *doc,
                     struct error *err)
{
    _cleanup_buf_ struct buf line = BUF_INIT(LINE_MAX_BYTES);
    struct slice text = json_write(arena, doc, false);
    buf_add(&line, text.data, text.len);
    buf_addc(&line, '\n');
    if (buf_check(&line, "an event", err) < 0)
        return -1;
    if (!http_started(e->x)) {
        api_tell_execution(e->x, e->id);
        if (http_reply_start(e->x, 200, "application/x-ndjson", -1, err) < 0)
            return -1;
    }
    return http_reply_write(e->x, line.data, line.len, err);
}

static int send_text(struct execution *e, const char *type, struct slice text, struct error *err)
{
    char time[TIME_TEXT_SIZE];
    struct arena *arena = arena_new();
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    time_rfc3339(time_now_ms(), time);
    yyjson_mut_obj_add_str(doc, root, "type", type);
    json_add_lossy(doc, root, "text", text);
    yyjson_mut_obj_add_str(doc, root, "timestamp", time);
    int rc = text.len == 0 ? 0 : send_line(e, arena, doc, err);
    arena_free(arena);
    return rc;
}

static int send_output(struct execution *e, const struct code_event *event, struct error *err)
{
    bool is_stdout = event->kind == CODE_STDOUT;
    struct arena *arena = arena_new();
    struct slice text = code_text_add(&e->text[is_stdout ? 0 : 1], arena, event->text);
    int rc = send_text(e, is_stdout ? "stdout" : "stderr", text, err);
    arena_free(arena);
    return rc;
}

/* E2B's own server takes the quotes off a string's text, and its users compare with that. */
static void unquote_text(yyjson_mut_val *root)
{
    yyjson_mut_val *text = yyjson_mut_obj_get(root, "text");
    const char *at = yyjson_mut_get_str(text);
    size_t len = yyjson_mut_get_len(text);
    if (len >= 2 && (at[0] == '\'' || at[0] == '"') && at[len - 1] == at[0])
        yyjson_mut_set_strn(text, at + 1, len - 2);
}

static void result_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                        const struct code_event *event)
{
    yyjson_mut_obj_add_str(doc, root, "type", "result");
    yyjson_mut_obj_add_bool(doc, root, "is_main_result", event->is_main);
    code_items_json(doc, root, event);
    unquote_text(root);
}

static void error_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                       const struct code_event *event)
{
    yyjson_mut_obj_add_str(doc, root, "type", "error");
    json_add_lossy(doc, root, "name", event->name);
    json_add_lossy(doc, root, "value", event->value);
    json_add_lossy(doc, root, "traceback", event->traceback);
}

static void idle_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                      const struct code_event *event)
{
    yyjson_mut_obj_add_str(doc, root, "type", "keepalive");
}

static void dropped_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                         const struct code_event *event)
{
    yyjson_mut_obj_add_str(doc, root, "type", "stderr");
    yyjson_mut_obj_add_str(doc, root, "text",
                           arena_printf(arena, "[%llu bytes of output were dropped]\n",
                                        (unsigned long long)event->dropped));
}

static void count_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                       const struct code_event *event)
{
    yyjson_mut_obj_add_str(doc, root, "type", "number_of_executions");
    yyjson_mut_obj_add_uint(doc, root, "execution_count", event->count);
}

static void end_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                     const struct code_event *event)
{
    yyjson_mut_obj_add_str(doc, root, "type", "end_of_execution");
}

typedef void event_writer(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                          const struct code_event *event);

static int send_event(struct execution *e, event_writer *write, const struct code_event *event,
                      struct error *err)
{
    struct arena *arena = arena_new();
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(arena, &root);
    write(arena, doc, root, event);
    int rc = send_line(e, arena, doc, err);
    arena_free(arena);
    return rc;
}

static int tell(void *ctx, const struct code_event *event, struct error *err)
{
    static event_writer *const writers[] = {
        [CODE_RESULT] = result_json,
        [CODE_ERROR] = error_json,
        [CODE_DROPPED] = dropped_json,
        [CODE_IDLE] = idle_json,
    };
    struct execution *e = ctx;
    if (event->kind == CODE_STDOUT || event->kind == CODE_STDERR)
        return send_output(e, event, err);
    if (event->kind != CODE_END)
        return send_event(e, writers[event->kind], event, err);
    if (send_text(e, "stdout", code_text_end(&e->text[0]), err) < 0 ||
        send_text(e, "stderr", code_text_end(&e->text[1]), err) < 0 ||
        send_event(e, count_json, event, err) < 0)
        return -1;
    return send_event(e, end_json, event, err);
}

/* A run that ends with its sandbox ends in an error for whoever reads its events, and not in a
 * connection that breaks off. */
static int tell_broken(struct execution *e, const struct error *why, struct error *err)
{
    const struct code_event broken = {.kind = CODE_ERROR,
                                      .name = slice_of("UnexpectedEndOfExecution"),
                                      .value = slice_of(why->message),
                                      .traceback = slice_of(why->message)};
    if (send_event(e, error_json, &broken, err) < 0)
        return -1;
    return send_event(e, end_json, &broken, err);
}

struct execute_request {
    struct code_run run;
    const char *language; /* of the default context; NULL: another one is meant */
};

static int read_request(struct http_exchange *x, struct execute_request *ret, struct error *err)
{
    struct execute_request request = {.run = {.idle_ms = KEEPALIVE_MS}};
    struct arena *arena = http_arena(x);
    yyjson_val *body, *env = NULL;
    const char *language = NULL;
    if (api_json_body(x, &body, err) < 0)
        return -1;
    yyjson_val *code = yyjson_obj_get(body, "code");
    if (!yyjson_is_str(code))
        return error_set(err, ERROR_INVALID_ARGUMENT, "code is required, and a string");
    if (member_text(body, "", "context_id", &request.run.context, err) < 0 ||
        member_text(body, "", "language", &language, err) < 0 ||
        member_object(body, "", "env_vars", &env, err) < 0 ||
        env_from_json(arena, env, "env_vars", &request.run.env, err) < 0)
        return -1;
    if (request.run.context != NULL && language != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "Only one of context_id or language can be provided");
    request.run.code = (struct slice){yyjson_get_str(code), yyjson_get_len(code)};
    if (request.run.context == NULL) {
        request.language = code_language(language == NULL ? "python" : language);
        if (request.language == NULL)
            return error_set(err, ERROR_CODE_LANGUAGE_UNKNOWN,
                             "language: there is no \"%.40s\" here", language);
        request.run.context = default_id(arena, request.language);
    } else {
        request.language = default_language(request.run.context);
    }
    *ret = request;
    return 0;
}

int e2b_execute(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    const struct api_call *call = ctx;
    struct execution e = {.x = x};
    struct execute_request request;
    struct connect_box box;
    struct error why = {0};
    if (e2b_box(x, call->api, E2B_NEEDS_TOKEN, "user", &box, err) < 0 ||
        read_request(x, &request, err) < 0 || record_stream(x, err) < 0)
        return -1;
    const struct code_place place = place_of(&box);
    history_run_begin(e.id);
    request.run.execution = e.id;
    int rc = code_run(call->api->code, &place, &request.run, tell, &e, &why);
    if (rc < 0 && why.code == ERROR_CODE_CONTEXT_NOT_FOUND && request.language != NULL) {
        if (make_default(x, &box, request.language, err) < 0)
            return -1;
        rc = code_run(call->api->code, &place, &request.run, tell, &e, &why);
    }
    if (rc < 0 && (!http_started(x) || !http_can_tell(x, &why))) {
        *err = why;
        return -1;
    }
    if (rc < 0)
        record_failure(x, &why);
    if (rc < 0 && tell_broken(&e, &why, err) < 0)
        return -1;
    return http_reply_end(x, err);
}
