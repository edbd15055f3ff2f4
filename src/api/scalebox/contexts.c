/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ContextService, and /v1/contexts of the control plane.
 *
 * The client makes a context for every run that names none, and never deletes it. So of those that
 * were made here the sandbox keeps the ones that were used last: what nobody came back to goes when
 * there are too many, as soon as something has run in it.
 */

#include "api/scalebox/contexts.h"

#include <string.h>

#include "api/blaxel/members.h"
#include "api/connect/connect.h"
#include "api/connect/message.h"
#include "api/connect/service.h"
#include "api/e2b/sandbox_json.h"
#include "api/scalebox/door.h"
#include "api/scalebox/handlers.h"
#include "api/scalebox/sandbox_json.h"
#include "api/v0/env.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"
#include "loop/co.h"

#define PREFIX "sb-"

enum {
    RANDOM_LEN = 20,
    ID_SIZE = sizeof(PREFIX) + RANDOM_LEN,
    KEPT_MAX = CODE_CONTEXTS_MAX / 2,
    UNUSED_MS = 60 * 1000, /* how long one that nothing has run in is left alone */
    ROOM_POLL_MS = 20,
    ROOM_MAX_MS = 20 * 1000,
};

/* --- names --- */

int scalebox_text(yyjson_val *message, const char *name, const char **ret, struct error *err)
{
    if (message_text(message, "", name, ret, err) < 0)
        return -1;
    if (*ret != NULL && **ret == '\0')
        *ret = NULL;
    return 0;
}

int scalebox_context_id(const char *sandbox, const char *id, const char **ret_id, struct error *err)
{
    const char *dot = strchr(id, '.');
    size_t len = dot == NULL ? 0 : (size_t)(dot - id);
    if (dot != NULL && (strlen(sandbox) != len || strncmp(sandbox, id, len) != 0))
        return error_set(err, ERROR_CODE_CONTEXT_NOT_FOUND,
                         "the context \"%.80s\" is not one of the sandbox \"%.40s\"", id, sandbox);
    *ret_id = dot == NULL ? id : dot + 1;
    return 0;
}

int scalebox_only_sandbox(struct http_exchange *x, const struct api_call *call, const char **ret_id,
                          struct error *err)
{
    const struct sandbox_filter filter = {.workspace = call->workspace, .limit = SIZE_MAX};
    struct sandbox_info *items;
    size_t count, total, running = 0;
    const char *id = NULL;
    if (sandboxes_list(call->api->sandboxes, &filter, http_arena(x), &items, &count, &total, err) <
        0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (sandbox_seen_status(&items[i]) == SANDBOX_RUNNING) {
            id = items[i].id;
            running++;
        }
    if (running != 1)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "sandbox_id is required: %zu sandboxes run, and only where it is one is "
                         "it clear which is meant",
                         running);
    *ret_id = id;
    return 0;
}

/* --- room --- */

static bool is_ours(const struct code_context *c)
{
    return strncmp(c->id, PREFIX, sizeof(PREFIX) - 1) == 0;
}

static bool may_go(const struct code_context *c)
{
    return is_ours(c) && !c->busy &&
           (c->runs > 0 || time_now_ms() - (int64_t)c->started_ms > UNUSED_MS);
}

/* Deletes what was not used for longest, as long as there are too many. 1: there is room; 0: not
 * yet. */
static int make_room(struct code *code, const struct code_place *place, struct error *err)
{
    for (;;) {
        struct arena *arena = arena_new();
        struct code_context *items, *oldest = NULL;
        size_t count = 0, ours = 0;
        int rc = code_context_list(code, place, arena, &items, &count, err);
        for (size_t i = 0; rc == 0 && i < count; i++) {
            ours += is_ours(&items[i]);
            if (may_go(&items[i]) && (oldest == NULL || items[i].used_ms < oldest->used_ms))
                oldest = &items[i];
        }
        bool goes = rc == 0 && oldest != NULL && (count >= CODE_CONTEXTS_MAX || ours >= KEPT_MAX);
        /* One that is gone by now, somebody else was faster with. */
        struct error why = {0};
        if (goes && code_context_delete(code, place, oldest->id, &why) < 0)
            goes = why.code == ERROR_CODE_CONTEXT_NOT_FOUND;
        arena_free(arena);
        if (!goes)
            return rc < 0 ? -1 : count < CODE_CONTEXTS_MAX;
    }
}

int scalebox_make_room(struct code *code, const struct code_place *place, struct error *err)
{
    return make_room(code, place, err) < 0 ? -1 : 0;
}

/* Many runs at once are all begun with a context each: those that find no room wait for some. Where
 * none comes in time, what is told is why. */
static int create(struct http_exchange *x, struct code *code, const struct code_place *place,
                  const struct code_context_request *request, struct code_context *ret,
                  struct error *err)
{
    char id[ID_SIZE] = PREFIX;
    struct code_context_request named = *request;
    random_id(id + sizeof(PREFIX) - 1, RANDOM_LEN);
    named.id = id;
    int64_t end = loop_now(http_loop(x)) + ROOM_MAX_MS;
    for (;;) {
        int room = make_room(code, place, err);
        if (room < 0)
            return -1;
        bool late = loop_now(http_loop(x)) >= end;
        if ((room > 0 || late) &&
            code_context_create(code, place, &named, http_arena(x), ret, err) == 0)
            return 0;
        if ((room > 0 && err->code != ERROR_LIMIT_EXCEEDED) || late)
            return -1;
        if (co_sleep(http_loop(x), ROOM_POLL_MS, err) < 0)
            return -1;
    }
}

/* --- ContextService --- */

static int create_method(struct http_exchange *x, const struct connect_box *box,
                         yyjson_val *message, struct error *err)
{
    struct code_context_request request = {.user = box->user};
    const struct code_place place = {box->workspace, box->sandbox, box->actor};
    struct code_context context;
    if (scalebox_text(message, "language", &request.language, err) < 0 ||
        scalebox_text(message, "cwd", &request.cwd, err) < 0 ||
        create(x, box->api->code, &place, &request, &context, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_str(doc, root, "id", context.id);
    yyjson_mut_obj_add_str(doc, root, "language", context.language);
    json_add_lossy(doc, root, "cwd", slice_of(context.cwd));
    scalebox_add_time(doc, root, "createdAt", (int64_t)context.started_ms);
    yyjson_mut_obj_add_obj(doc, root, "envVars");
    return connect_reply(x, doc, err);
}

static int destroy_method(struct http_exchange *x, const struct connect_box *box,
                          yyjson_val *message, struct error *err)
{
    const struct code_place place = {box->workspace, box->sandbox, box->actor};
    const char *id = NULL;
    if (scalebox_text(message, "contextId", &id, err) < 0)
        return -1;
    if (id == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "contextId is required");
    if (scalebox_context_id(box->sandbox, id, &id, err) < 0 ||
        code_context_delete(box->api->code, &place, id, err) < 0)
        return -1;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    yyjson_mut_obj_add_bool(doc, root, "success", true);
    return connect_reply(x, doc, err);
}

int scalebox_context(struct http_exchange *x, const struct route_params *params, void *ctx,
                     struct error *err)
{
    static const struct connect_method methods[] = {
        {"CreateContext", CONNECT_UNARY, create_method},
        {"DestroyContext", CONNECT_UNARY, destroy_method},
    };
    const struct api_call *call = ctx;
    struct connect_box box;
    if (scalebox_box(x, call->api, &box, err) < 0)
        return -1;
    return connect_serve(x, &box, "ContextService", methods, ARRAY_LEN(methods),
                         route_param(params, "method"), err);
}

/* --- /v1/contexts --- */

static int reply_context(struct http_exchange *x, int status, const char *sandbox,
                         const struct code_context *context, struct slice env, struct error *err)
{
    struct arena *arena = http_arena(x);
    yyjson_mut_doc *doc;
    yyjson_mut_val *root = scalebox_envelope(arena, &doc);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "data");
    const char *id = arena_printf(arena, "%s.%s", sandbox, context->id);
    yyjson_mut_obj_add_str(doc, data, "id", id);
    yyjson_mut_obj_add_str(doc, data, "context_id", id);
    yyjson_mut_obj_add_str(doc, data, "sandbox_id", sandbox);
    yyjson_mut_obj_add_str(doc, data, "language", context->language);
    json_add_lossy(doc, data, "cwd", slice_of(context->cwd));
    yyjson_mut_obj_add_val(doc, data, "env_vars", env_to_json(doc, env));
    scalebox_add_time(doc, data, "created_at", (int64_t)context->started_ms);
    return api_reply_json(x, status, doc, err);
}

static int which_sandbox(struct http_exchange *x, const struct api_call *call, yyjson_val *body,
                         struct sandbox_info *ret_info, struct error *err)
{
    const char *id = http_header(x, "X-Sandbox-ID");
    if (member_text(body, "", "sandbox_id", &id, err) < 0 ||
        (id == NULL && scalebox_only_sandbox(x, call, &id, err) < 0))
        return -1;
    return e2b_sandbox_find(x, call, id, ret_info, err);
}

int scalebox_context_create(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    const struct api_call *call = ctx;
    struct code_context_request request = {0};
    struct code_context context;
    struct sandbox_info info;
    yyjson_val *body, *env = NULL;
    if (api_json_body(x, &body, err) < 0 ||
        scalebox_text(body, "language", &request.language, err) < 0 ||
        scalebox_text(body, "cwd", &request.cwd, err) < 0 ||
        member_object(body, "", "env_vars", &env, err) < 0 ||
        env_from_json(http_arena(x), env, "env_vars", &request.env, err) < 0 ||
        which_sandbox(x, call, body, &info, err) < 0)
        return -1;
    const struct code_place place = {call->workspace, info.id, call->principal.name};
    if (create(x, call->api->code, &place, &request, &context, err) < 0)
        return -1;
    return reply_context(x, 201, info.id, &context, request.env, err);
}

/* "SANDBOX.CONTEXT" in the path; its place, and the rest of it. */
static int find(struct http_exchange *x, const struct route_params *params,
                const struct api_call *call, struct code_place *ret_place, const char **ret_id,
                struct error *err)
{
    const char *id = route_param(params, "id");
    const char *dot = strchr(id, '.');
    struct sandbox_info info;
    if (dot == NULL)
        return error_set(err, ERROR_CODE_CONTEXT_NOT_FOUND,
                         "there is no context \"%.80s\": ids of contexts here are SANDBOX.CONTEXT",
                         id);
    if (e2b_sandbox_find(x, call, arena_dup(http_arena(x), id, (size_t)(dot - id)), &info, err) < 0)
        return -1;
    *ret_place = (struct code_place){call->workspace, info.id, call->principal.name};
    *ret_id = dot + 1;
    return 0;
}

int scalebox_context_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                         struct error *err)
{
    const struct api_call *call = ctx;
    const struct slice none = {NULL, 0};
    struct code_place place;
    struct code_context context;
    const char *id;
    if (find(x, params, call, &place, &id, err) < 0 ||
        code_context_get(call->api->code, &place, id, http_arena(x), &context, err) < 0)
        return -1;
    return reply_context(x, 200, place.sandbox, &context, none, err);
}

int scalebox_context_delete(struct http_exchange *x, const struct route_params *params, void *ctx,
                            struct error *err)
{
    const struct api_call *call = ctx;
    struct code_place place;
    const char *id;
    if (find(x, params, call, &place, &id, err) < 0 ||
        code_context_delete(call->api->code, &place, id, err) < 0)
        return -1;
    yyjson_mut_doc *doc;
    yyjson_mut_val *root = scalebox_envelope(http_arena(x), &doc);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "data");
    json_add_lossy(doc, data, "context_id", slice_of(route_param(params, "id")));
    yyjson_mut_obj_add_str(doc, data, "message", "deleted");
    return api_reply_json(x, 200, doc, err);
}
