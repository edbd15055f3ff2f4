/* SPDX-License-Identifier: Apache-2.0 */

/* /code: running code in a sandbox's interpreters, and those interpreters (contexts). */

#include "api/v0/code.h"

#include <stddef.h>
#include <string.h>

#include "api/handlers.h"
#include "api/record.h"
#include "api/v0/env.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"

enum { KEEPALIVE_MS = 20 * 1000 };

struct code_place code_place(const struct route_params *params, const struct api_call *call)
{
    return (struct code_place){.workspace = call->workspace,
                               .sandbox = route_param(params, "name"),
                               .actor = call->principal.name};
}

/* --- runs --- */

struct run_request {
    struct slice code;
    const char *language, *context;
    yyjson_val *env;
    int64_t timeout_ms;
    yyjson_val *timeout;
};

static const struct json_field run_fields[] = {
    {"code", JSON_BYTES, true, offsetof(struct run_request, code)},
    {"language", JSON_STRING, .offset = offsetof(struct run_request, language)},
    {"context", JSON_STRING, .offset = offsetof(struct run_request, context)},
    {"env", JSON_OBJECT, .offset = offsetof(struct run_request, env)},
    {"timeout", JSON_ANY, .offset = offsetof(struct run_request, timeout)},
};

/* Seconds, with a fraction if need be. */
static int read_timeout(yyjson_val *value, int64_t *ret_ms, struct error *err)
{
    double seconds = value == NULL ? 0 : yyjson_get_num(value);
    if (value != NULL &&
        (!yyjson_is_num(value) || !(seconds >= 0) || seconds > (double)CODE_TIME_MAX_S))
        return error_set(err, ERROR_INVALID_ARGUMENT, "timeout: has to be seconds, 0 (none) to %d",
                         CODE_TIME_MAX_S);
    *ret_ms = (int64_t)(seconds * 1000);
    if (seconds > 0 && *ret_ms == 0)
        *ret_ms = 1;
    return 0;
}

static int run_from_json(struct arena *arena, yyjson_val *body, struct code_run *ret_run,
                         struct error *err)
{
    struct run_request request = {0};
    struct code_run run = {.idle_ms = KEEPALIVE_MS};
    if (body == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "code is required");
    if (json_read(arena, body, "", run_fields, ARRAY_LEN(run_fields), &request, err) < 0 ||
        env_from_json(arena, request.env, "env", &run.env, err) < 0 ||
        read_timeout(request.timeout, &run.timeout_ms, err) < 0)
        return -1;
    if (request.language != NULL && request.context != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "context: has a language already; give one of the two");
    run.code = request.code;
    run.language = request.language;
    run.context = request.context;
    *ret_run = run;
    return 0;
}

int v0_code_run(struct http_exchange *x, const struct route_params *params, void *ctx,
                struct error *err)
{
    const struct api_call *call = ctx;
    const struct code_place place = code_place(params, call);
    enum code_shape shape;
    struct code_run run;
    yyjson_val *body;
    if (code_shape(x, &shape, err) < 0 || api_json_body(x, &body, err) < 0 ||
        run_from_json(http_arena(x), body, &run, err) < 0 ||
        (shape != CODE_ONE_ANSWER && record_stream(x, err) < 0))
        return -1;
    struct code_reply *reply = code_reply_new(x, shape);
    int rc = code_run(call->api->code, &place, &run, code_reply_listen, reply, err);
    rc = rc == 0 ? code_reply_end(reply, err) : code_reply_fail(reply, err);
    code_reply_free(reply);
    return rc;
}

int v0_code_follow(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    const struct code_place place = code_place(params, call);
    enum code_shape shape;
    if (code_shape(x, &shape, err) < 0)
        return -1;
    struct code_reply *reply = code_reply_new(x, shape);
    int rc = code_follow(call->api->code, &place, route_param(params, "context"), KEEPALIVE_MS,
                         code_reply_listen, reply, err);
    rc = rc == 0 ? code_reply_end(reply, err) : code_reply_fail(reply, err);
    code_reply_free(reply);
    return rc;
}

/* --- contexts --- */

static void context_json(yyjson_mut_doc *doc, yyjson_mut_val *object,
                         const struct code_context *context)
{
    json_add_lossy(doc, object, "id", slice_of(context->id));
    yyjson_mut_obj_add_str(doc, object, "language", context->language);
    json_add_lossy(doc, object, "workingDir", slice_of(context->cwd));
    json_add_lossy(doc, object, "user", slice_of(context->user));
    yyjson_mut_obj_add_bool(doc, object, "default", context->is_default);
    yyjson_mut_obj_add_str(doc, object, "status",
                           context->busy   ? "busy"
                           : context->dead ? "stopped"
                                           : "idle");
    if (context->pid != 0)
        yyjson_mut_obj_add_uint(doc, object, "pid", context->pid);
    if (context->started_ms != 0)
        api_add_http_time(doc, object, "startedAt", context->started_ms);
}

static int reply_context(struct http_exchange *x, int status, const struct code_context *context,
                         struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    context_json(doc, root, context);
    return api_reply_json(x, status, doc, err);
}

int v0_code_context_list(struct http_exchange *x, const struct route_params *params, void *ctx,
                         struct error *err)
{
    const struct api_call *call = ctx;
    const struct code_place place = code_place(params, call);
    struct code_context *items;
    size_t count;
    if (code_context_list(call->api->code, &place, http_arena(x), &items, &count, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "contexts");
    for (size_t i = 0; i < count; i++)
        context_json(doc, yyjson_mut_arr_add_obj(doc, list), &items[i]);
    return api_reply_json(x, 200, doc, err);
}

struct context_request {
    const char *language, *working_dir, *user;
    yyjson_val *env;
};

static const struct json_field context_fields[] = {
    {"language", JSON_STRING, .offset = offsetof(struct context_request, language)},
    {"workingDir", JSON_STRING, .offset = offsetof(struct context_request, working_dir)},
    {"user", JSON_STRING, .offset = offsetof(struct context_request, user)},
    {"env", JSON_OBJECT, .offset = offsetof(struct context_request, env)},
};

static int context_from_json(struct arena *arena, yyjson_val *body,
                             struct code_context_request *ret_request, struct error *err)
{
    struct context_request request = {0};
    struct code_context_request result = {0};
    char path[PATH_BYTES_MAX + 1];
    if (body != NULL &&
        json_read(arena, body, "", context_fields, ARRAY_LEN(context_fields), &request, err) < 0)
        return -1;
    if (request.working_dir != NULL) {
        if (path_normalize(request.working_dir, strlen(request.working_dir), path, err) < 0)
            return error_prefix(err, "workingDir");
        result.cwd = arena_strdup(arena, path);
    }
    result.language = request.language;
    result.user = request.user;
    *ret_request = result;
    return env_from_json(arena, request.env, "env", &ret_request->env, err);
}

int v0_code_context_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                           struct error *err)
{
    const struct api_call *call = ctx;
    const struct code_place place = code_place(params, call);
    struct code_context_request request;
    struct code_context made;
    yyjson_val *body;
    if (api_json_body(x, &body, err) < 0 ||
        context_from_json(http_arena(x), body, &request, err) < 0 ||
        code_context_create(call->api->code, &place, &request, http_arena(x), &made, err) < 0)
        return -1;
    return reply_context(x, 201, &made, err);
}

int v0_code_context_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                        struct error *err)
{
    const struct api_call *call = ctx;
    const struct code_place place = code_place(params, call);
    struct code_context found;
    if (code_context_get(call->api->code, &place, route_param(params, "context"), http_arena(x),
                         &found, err) < 0)
        return -1;
    return reply_context(x, 200, &found, err);
}

int v0_code_context_restart(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    const struct api_call *call = ctx;
    const struct code_place place = code_place(params, call);
    struct code_context found;
    if (code_context_restart(call->api->code, &place, route_param(params, "context"), http_arena(x),
                             &found, err) < 0)
        return -1;
    return reply_context(x, 200, &found, err);
}

static int reply_done(struct http_exchange *x, const char *id, const char *message,
                      struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "id", id);
    yyjson_mut_obj_add_str(doc, root, "message", message);
    return api_reply_json(x, 200, doc, err);
}

int v0_code_context_interrupt(struct http_exchange *x, const struct route_params *params, void *ctx,
                              struct error *err)
{
    const struct api_call *call = ctx;
    const struct code_place place = code_place(params, call);
    const char *id = route_param(params, "context");
    if (code_context_interrupt(call->api->code, &place, id, err) < 0)
        return -1;
    return reply_done(x, id, "Context interrupted", err);
}

int v0_code_context_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                           struct error *err)
{
    const struct api_call *call = ctx;
    const struct code_place place = code_place(params, call);
    const char *id = route_param(params, "context");
    if (code_context_delete(call->api->code, &place, id, err) < 0)
        return -1;
    return reply_done(x, id, "Context deleted", err);
}
