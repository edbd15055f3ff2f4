/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Commands over a WebSocket: any number of them one after another, and several at once, each with
 * an id. The request's coroutine reads messages and never waits for a command; each command has
 * tasks of its own (exec_stream.c).
 *
 * What is wrong with a message is told in a message; the connection goes on.
 */

#include "api/v0/exec_ws.h"

#include <string.h>

#include "api/handlers.h"
#include "api/record.h"
#include "api/v0/exec_stream.h"
#include "base/cleanup.h"
#include "http/upgrade.h"
#include "sandbox/sandbox.h"

static const char *const protocols[] = {"cella.exec.v1", NULL};

struct session {
    struct http_exchange *x;
    struct exec_scene scene;
    struct exec_stream *streams[EXEC_STREAMS_MAX];
};

static int send_text(struct session *session, struct slice text, struct error *err)
{
    return websocket_send(session->scene.ws, WS_TEXT, text.data, text.len, err);
}

/* --- its streams --- */

/* Frees those that have ended: their ids and their places can be used again. */
static void sweep(struct session *session)
{
    for (size_t i = 0; i < ARRAY_LEN(session->streams); i++)
        if (session->streams[i] != NULL && exec_stream_ended(session->streams[i])) {
            exec_stream_free(session->streams[i], true);
            session->streams[i] = NULL;
        }
}

static struct exec_stream **find(struct session *session, const char *id)
{
    for (size_t i = 0; i < ARRAY_LEN(session->streams); i++)
        if (session->streams[i] != NULL && strcmp(exec_stream_id(session->streams[i]), id) == 0)
            return &session->streams[i];
    return NULL;
}

static struct exec_stream **find_free(struct session *session)
{
    for (size_t i = 0; i < ARRAY_LEN(session->streams); i++)
        if (session->streams[i] == NULL)
            return &session->streams[i];
    return NULL;
}

/* --- messages --- */

/* *arena goes to the stream. */
static int open_stream(struct session *session, const struct exec_ask_message *m,
                       struct arena **arena, bool *ret_ended, struct error *err)
{
    if (find(session, m->id) != NULL)
        return error_set(err, ERROR_ALREADY_EXISTS, "there is a stream \"%s\" already", m->id);
    struct exec_stream **to = find_free(session);
    *ret_ended = true;
    if (to == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "this connection has %d streams already",
                         EXEC_STREAMS_MAX);
    if (m->ask == EXEC_ASK_START && record_exec(session->x, err) < 0)
        return -1;
    return exec_stream_new(&session->scene, m, steal_ptr(*arena), to, err);
}

static int detach(struct exec_stream **stream, struct error *err)
{
    if (exec_stream_detach(*stream, err) < 0)
        return -1;
    exec_stream_free(*stream, true);
    *stream = NULL;
    return 0;
}

static int serve_stream(struct session *session, const struct exec_ask_message *m, bool *ret_ended,
                        struct error *err)
{
    struct exec_stream **stream = find(session, m->id);
    if (stream == NULL) {
        *ret_ended = true;
        return error_set(err, ERROR_PROCESS_NOT_FOUND, "there is no stream \"%s\" here (any more)",
                         m->id);
    }
    switch (m->ask) {
    case EXEC_ASK_STDIN:
        return exec_stream_input(*stream, m->data, m->end, err);
    case EXEC_ASK_SIGNAL:
        return exec_stream_signal(*stream, m->signal, err);
    case EXEC_ASK_CANCEL:
        return exec_stream_cancel(*stream, m->grace_ms, err);
    case EXEC_ASK_DETACH:
        return detach(stream, err);
    default:
        return 0;
    }
}

static int serve_text(struct session *session, struct slice text, struct arena **arena,
                      char id[TERMINAL_SESSION_MAX + 1], bool *ret_ended, struct error *err)
{
    struct exec_ask_message m;
    const char *named;
    int rc = exec_message_read(*arena, text, &m, &named, err);
    snprintf(id, TERMINAL_SESSION_MAX + 1, "%s", named == NULL ? "" : named);
    if (rc < 0) {
        *ret_ended = named != NULL && find(session, named) == NULL;
        return -1;
    }
    if (m.ask == EXEC_ASK_PING)
        return send_text(session, exec_pong_message(*arena), err);
    if (m.ask == EXEC_ASK_START || m.ask == EXEC_ASK_ATTACH)
        return open_stream(session, &m, arena, ret_ended, err);
    return serve_stream(session, &m, ret_ended, err);
}

/* -1: the connection has to end. */
static int serve_message(struct session *session, const struct ws_message *message,
                         struct error *err)
{
    if (!message->text) {
        websocket_close(session->scene.ws, WS_CLOSE_UNSUPPORTED,
                        "messages are JSON; bytes go in dataBase64", NULL);
        return 0;
    }
    struct arena *arena = arena_new_for(http_memory(session->x));
    char id[TERMINAL_SESSION_MAX + 1] = "";
    bool ended = false;
    struct error why = {0};
    sweep(session);
    int rc = serve_text(session, message->data, &arena, id, &ended, &why);
    if (rc < 0 && why.code == ERROR_CANCELLED) {
        *err = why;
    } else if (rc < 0) {
        struct arena *answer = arena_new_for(http_memory(session->x));
        rc = send_text(
            session, exec_error_message(answer, id[0] != '\0' ? id : NULL, &why, ended, NULL), err);
        arena_free(answer);
    }
    if (arena != NULL)
        arena_free(arena);
    return rc;
}

/* --- the connection --- */

static int converse(struct session *session, struct error *err)
{
    struct ws_message message;
    struct arena *arena = arena_new_for(http_memory(session->x));
    int rc = send_text(session, exec_ready_message(arena, session->scene.sandbox), err);
    arena_free(arena);
    while (rc == 0 && (rc = websocket_read(session->scene.ws, &message, err)) > 0)
        rc = serve_message(session, &message, err);
    for (size_t i = 0; i < ARRAY_LEN(session->streams); i++)
        exec_stream_free(session->streams[i], false);
    return rc < 0 ? -1 : 0;
}

int exec_ws_serve(struct http_exchange *x, const struct api_call *call, const char *sandbox,
                  const char *user, struct error *err)
{
    const struct websocket_options options = {.protocols = protocols};
    struct session session = {.x = x,
                              .scene = {.loop = http_loop(x),
                                        .memory = http_memory(x),
                                        .sandboxes = call->api->sandboxes,
                                        .workspace = call->workspace,
                                        .sandbox = sandbox,
                                        .actor = call->principal.name,
                                        .user = user}};
    struct sandbox_info info;
    if (http_wants_upgrade(x, "websocket") && sandboxes_get(call->api->sandboxes, call->workspace,
                                                            sandbox, http_arena(x), &info, err) < 0)
        return -1;
    if (websocket_accept(x, &options, &session.scene.ws, err) < 0)
        return -1;
    int rc = converse(&session, err);
    websocket_free(session.scene.ws);
    return rc;
}

int v0_exec_ws(struct http_exchange *x, const struct route_params *params, void *ctx,
               struct error *err)
{
    return exec_ws_serve(x, ctx, route_param(params, "name"), NULL, err);
}
