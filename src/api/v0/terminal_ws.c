/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A terminal over a WebSocket. The request's coroutine reads from the client, a task beside it
 * reads from the sandbox; each waits for the slower end of its own direction, so nothing piles up.
 *
 * What is wrong with the request, the session included, is an ordinary HTTP error, since the
 * session is found or made before the protocol changes.
 */

#include <string.h>

#include "api/handlers.h"
#include "api/v0/terminal_json.h"
#include "api/record.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "http/upgrade.h"
#include "http/websocket.h"
#include "loop/task.h"
#include "sandbox/terminals.h"

enum { CHARACTER_MS = 50 }; /* how long the rest of a character is waited for */

struct query {
    struct agent_terminal_open open;
    struct agent_terminal_attach attach;
    bool create; /* false: only a session that is there */
    bool binary; /* output as binary frames */
};

struct bridge {
    struct loop *loop;
    struct terminal *terminal;
    struct websocket *ws;
    bool binary;
    bool named; /* the client wants to know what of its input has arrived */
    struct terminal_text text;
};

/* --- the request --- */

static int query_texts(struct http_exchange *x, struct query *q, struct error *err)
{
    const struct {
        const char *name;
        const char **to;
    } texts[] = {
        {"sessionId", &q->open.session}, {"shell", &q->open.shell}, {"command", &q->open.command},
        {"workingDir", &q->open.cwd},    {"user", &q->open.user},   {"client", &q->attach.client},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (http_query(x, texts[i].name, texts[i].to, err) < 0)
            return -1;
        if (*texts[i].to != NULL && **texts[i].to == '\0')
            *texts[i].to = NULL; /* "?shell=&cols=80", as forms send it */
    }
    return terminal_dir(http_arena(x), q->open.cwd, &q->open.cwd, err);
}

static int query_read(struct http_exchange *x, struct query *q, struct error *err)
{
    if (query_texts(x, q, err) < 0 ||
        api_query_uint(x, "cols", 1, TERMINAL_SIZE_MAX, 0, &q->open.cols, err) < 0 ||
        api_query_uint(x, "rows", 1, TERMINAL_SIZE_MAX, 0, &q->open.rows, err) < 0 ||
        api_query_uint(x, "offset", 0, UINT64_MAX, 0, &q->attach.offset, err) < 0 ||
        api_query_bool(x, "create", true, &q->create, err) < 0 ||
        api_query_bool(x, "binary", false, &q->binary, err) < 0)
        return -1;
    if (q->attach.client != NULL && terminal_session_check(q->attach.client, NULL) < 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "client: \"%.64s\" is not 1 to %d letters, digits, '.', '_' and '-'",
                         q->attach.client, TERMINAL_SESSION_MAX);
    if (!q->create && q->open.session == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "create=false needs a sessionId");
    q->open.flags = q->open.session != NULL ? TERMINAL_OR_EXISTING : 0;
    q->attach.cols = q->open.cols;
    q->attach.rows = q->open.rows;
    return 0;
}

/* Finds or makes the session, and attaches to it. */
static int reach(struct http_exchange *x, const struct api_call *call, const char *name,
                 struct query *q, struct agent_terminal *ret_about, struct terminal **ret_terminal,
                 struct error *err)
{
    struct sandboxes *s = call->api->sandboxes;
    struct agent_terminal opened = {.session = q->open.session};
    if (q->create && sandbox_terminal_open(s, call->workspace, name, call->principal.name, &q->open,
                                           http_arena(x), &opened, err) < 0)
        return -1;
    q->attach.session = opened.session;
    if (terminal_attach(s, call->workspace, name, &q->attach, http_arena(x), ret_about,
                        ret_terminal, err) < 0)
        return -1;
    ret_about->created = opened.created;
    return 0;
}

/* --- from the sandbox --- */

static int send_frame(struct bridge *b, struct slice frame, struct error *err)
{
    if (frame.len == 0)
        return 0;
    return websocket_send(b->ws, WS_TEXT, frame.data, frame.len, err);
}

static int send_output(struct bridge *b, struct arena *arena, const struct terminal_event *event,
                       struct error *err)
{
    if (event->dropped > 0 &&
        (send_frame(b, terminal_output_frame(arena, &b->text, 0, (struct slice){0}, true), err) <
             0 ||
         send_frame(b, terminal_dropped_frame(arena, event->dropped, event->offset), err) < 0))
        return -1;
    if (b->binary)
        return websocket_send(b->ws, WS_BINARY, event->data.data, event->data.len, err);
    return send_frame(b, terminal_output_frame(arena, &b->text, event->offset, event->data, false),
                      err);
}

/* 1: go on; 0: that was the end. */
static int pass_on(struct bridge *b, struct arena *arena, struct error *err)
{
    struct terminal_event event;
    int64_t patience = b->text.held_len > 0 ? CHARACTER_MS : -1;
    if (terminal_next(b->terminal, patience, &event, err) < 0)
        return -1;
    const struct slice nothing = {0};
    switch (event.kind) {
    case TERMINAL_EVENT_OUTPUT:
        return send_output(b, arena, &event, err) < 0 ? -1 : 1;
    case TERMINAL_EVENT_QUIET:
        return send_frame(b, terminal_output_frame(arena, &b->text, 0, nothing, true), err) < 0 ? -1
                                                                                                : 1;
    case TERMINAL_EVENT_TAKEN:
        return b->named && send_frame(b, terminal_taken_frame(arena, event.taken), err) < 0 ? -1
                                                                                            : 1;
    case TERMINAL_EVENT_END:
        break;
    }
    if (send_frame(b, terminal_output_frame(arena, &b->text, 0, nothing, true), err) < 0)
        return -1;
    return send_frame(b, terminal_exit_frame(arena, &event.end), err);
}

/* The task. Whatever ends it, the client is told, and its Close ends the other direction. */
static void from_sandbox(void *arg)
{
    struct bridge *b = arg;
    struct error err;
    int rc;
    do {
        struct arena *arena = arena_new();
        rc = pass_on(b, arena, &err);
        if (rc < 0 && err.code != ERROR_CANCELLED)
            send_frame(b, terminal_error_frame(arena, &err), NULL);
        arena_free(arena);
    } while (rc > 0);
    if (rc == 0)
        websocket_close(b->ws, WS_CLOSE_NORMAL, "the terminal has ended", NULL);
    else if (err.code != ERROR_CANCELLED)
        websocket_close(b->ws, WS_CLOSE_GOING_AWAY, "the sandbox is gone", NULL);
}

/* --- from the client --- */

static int take_text(struct bridge *b, struct arena *arena, struct slice text, struct error *err)
{
    struct terminal_message message;
    if (terminal_message_from_json(arena, text, &message, err) < 0)
        return -1;
    switch (message.kind) {
    case TERMINAL_IS_INPUT:
        return terminal_input(b->terminal, message.data, err);
    case TERMINAL_IS_RESIZE:
        return terminal_resize(b->terminal, message.cols, message.rows, err);
    case TERMINAL_IS_PING:
        return send_frame(b, terminal_pong_frame(arena), err);
    }
    return 0;
}

/* A bad frame is told and passed over; what the sandbox does not take any more, the task tells. */
static int take_message(struct bridge *b, const struct ws_message *message, struct error *err)
{
    struct arena *arena = arena_new();
    struct error why;
    int rc = message->text ? take_text(b, arena, message->data, &why)
                           : terminal_input(b->terminal, message->data, &why);
    if (rc < 0 && why.code == ERROR_CANCELLED)
        *err = why;
    else if (rc < 0 && why.code != ERROR_UNAVAILABLE)
        rc = send_frame(b, terminal_error_frame(arena, &why), err);
    else
        rc = 0;
    arena_free(arena);
    return rc;
}

static int converse(struct bridge *b, struct error *err)
{
    struct task out = {0};
    struct ws_message message;
    int rc;
    if (task_start(b->loop, &out, from_sandbox, b, err) < 0)
        return -1;
    while ((rc = websocket_read(b->ws, &message, err)) > 0)
        if ((rc = take_message(b, &message, err)) < 0)
            break;
    task_stop(&out);
    return rc < 0 ? -1 : 0;
}

int v0_terminal_ws(struct http_exchange *x, const struct route_params *params, void *ctx,
                   struct error *err)
{
    const struct api_call *call = ctx;
    const char *name = route_param(params, "name");
    struct query q = {0};
    struct agent_terminal about;
    struct bridge b = {.loop = http_loop(x)};
    if (!http_wants_upgrade(x, "websocket"))
        return websocket_accept(x, NULL, &b.ws, err); /* which says what is missing */
    if (query_read(x, &q, err) < 0 || record_stream(x, err) < 0 ||
        reach(x, call, name, &q, &about, &b.terminal, err) < 0)
        return -1;
    b.binary = q.binary;
    b.named = q.attach.client != NULL;
    int rc = websocket_accept(x, NULL, &b.ws, err);
    if (rc == 0) {
        uint64_t offset = q.attach.offset < about.total ? q.attach.offset : about.total;
        rc = send_frame(&b, terminal_session_frame(http_arena(x), &about, offset), err);
        if (rc == 0)
            rc = converse(&b, err);
        websocket_free(b.ws);
    } else if (about.created) {
        sandbox_terminal_close(call->api->sandboxes, call->workspace, name, about.session, NULL);
    }
    terminal_detach(b.terminal);
    return rc;
}
