/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One command of a WebSocket, as up to three tasks: one passes its output on, one its input (from
 * the first input on), one waits for its end when it was given time to end by itself.
 *
 * A task that is cut off in the middle of a frame would spoil the connection for all others. So
 * tasks are cancelled only while they do not send; those that do are told to leave, and do so when
 * the frame is out.
 */

#include "api/v0/exec_stream.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "loop/task.h"
#include "sandbox/link.h"
#include "sandbox/process_output.h"
#include "sandbox/processes.h"

struct side {
    struct task task;
    bool sending;
};

struct exec_stream {
    const struct exec_scene *scene;
    struct arena *arena;
    struct exec_ask_message ask;
    bool leaving; /* tasks end at the next occasion */
    bool ended;   /* the last message was sent, or nobody takes it */

    struct side out;
    char pid[24]; /* "" while it starts */
    struct exec_place place;

    struct side in;
    struct co_cond changed; /* what is below, or pid, or leaving */
    struct buf input;
    bool input_end, input_ended;
    uint64_t taken;

    struct side killer;
    uint64_t grace_ms;
};

static int send_message(struct exec_stream *s, struct side *side, struct slice text,
                        struct error *err)
{
    side->sending = true;
    int rc = websocket_send(s->scene->ws, WS_TEXT, text.data, text.len, err);
    side->sending = false;
    return rc;
}

/* --- output --- */

static int send_piece(struct exec_stream *s, unsigned stream, struct slice data, bool flush,
                      struct error *err)
{
    struct arena *arena = arena_new_for(s->scene->memory);
    int rc = 0;
    if (!s->ask.base64)
        data = exec_text_take(arena, &s->place, stream, data, flush);
    if (data.len > 0)
        rc = send_message(
            s, &s->out,
            exec_output_message(arena, s->ask.id, stream, s->ask.base64, data, &s->place), err);
    arena_free(arena);
    return rc;
}

static int send_data(struct exec_stream *s, unsigned stream, struct slice data, struct error *err)
{
    while (data.len > 0 && !s->leaving) {
        size_t len = data.len < EXEC_PIECE_MAX ? data.len : EXEC_PIECE_MAX;
        s->place.offset += len;
        if (send_piece(s, stream, (struct slice){data.data, len}, false, err) < 0)
            return -1;
        data.data += len;
        data.len -= len;
    }
    return 0;
}

/* Characters whose rest will never come. */
static int flush_held(struct exec_stream *s, struct error *err)
{
    for (unsigned stream = 0; stream < 2; stream++)
        if (s->place.held_len[stream] > 0 &&
            send_piece(s, stream, (struct slice){NULL, 0}, true, err) < 0)
            return -1;
    return 0;
}

static int send_gap(struct exec_stream *s, struct arena *arena, uint64_t bytes, struct error *err)
{
    if (flush_held(s, err) < 0)
        return -1;
    s->place.offset += bytes;
    return send_message(s, &s->out, exec_gap_message(arena, s->ask.id, bytes, &s->place), err);
}

static int send_exit(struct exec_stream *s, struct arena *arena,
                     const struct agent_process *process, struct error *err)
{
    if (flush_held(s, err) < 0)
        return -1;
    s->ended = true; /* from here on its id is free */
    return send_message(s, &s->out, exec_exit_message(arena, s->ask.id, process, &s->place), err);
}

/* 1: go on; 0: that was the end. */
static int pass_on(struct exec_stream *s, struct process_output *output, struct arena *arena,
                   struct error *err)
{
    struct output_event event;
    int rc = 1;
    if (process_output_next(output, -1, arena, &event, err) < 0)
        return -1;
    switch (event.kind) {
    case OUTPUT_DATA:
        rc = send_data(s, event.stream - LOG_STDOUT, event.data, err) < 0 ? -1 : 1;
        break;
    case OUTPUT_DROPPED:
        rc = send_gap(s, arena, event.dropped, err) < 0 ? -1 : 1;
        break;
    case OUTPUT_IDLE:
        break;
    case OUTPUT_END:
        return send_exit(s, arena, &event.process, err);
    }
    return s->leaving ? 0 : rc;
}

static int begin(struct exec_stream *s, struct process_output **ret_output, struct error *err)
{
    const struct exec_scene *at = s->scene;
    struct agent_process process;
    struct agent_exec exec = s->ask.exec;
    exec.user = at->user;
    bool attach = s->ask.ask == EXEC_ASK_ATTACH;
    int rc = attach
                 ? process_output_follow(at->sandboxes, at->workspace, at->sandbox, s->ask.process,
                                         s->place.offset, s->ask.hold ? FOLLOW_HOLD : 0, s->arena,
                                         &process, ret_output, err)
                 : process_output_exec(at->sandboxes, at->workspace, at->sandbox, at->actor, &exec,
                                       s->arena, &process, ret_output, err);
    if (rc < 0)
        return -1;
    snprintf(s->pid, sizeof(s->pid), "%" PRIu64, process.pid);
    co_cond_wake_all(&s->changed);
    return send_message(
        s, &s->out, exec_started_message(s->arena, s->ask.id, attach, &process, &s->place), err);
}

/* The task. Whatever ends it, the client is told, unless it asked to hear no more. */
static void run_output(void *arg)
{
    struct exec_stream *s = arg;
    struct process_output *output = NULL;
    struct error err = {0};
    int rc = begin(s, &output, &err) < 0 ? -1 : 1;
    while (rc > 0 && !s->leaving) {
        struct arena *arena = arena_new_for(s->scene->memory);
        rc = pass_on(s, output, arena, &err);
        arena_free(arena);
    }
    process_output_end(output);
    if (rc < 0 && err.code != ERROR_CANCELLED && !s->leaving && !s->ended) {
        s->ended = true;
        send_message(s, &s->out,
                     exec_error_message(s->arena, s->ask.id, &err, true,
                                        s->pid[0] != '\0' ? &s->place : NULL),
                     NULL);
    }
    s->ended = true;
    co_cond_wake_all(&s->changed);
}

/* --- input --- */

static bool input_waits(const struct exec_stream *s)
{
    return s->input.len > 0 || (s->input_end && !s->input_ended);
}

/* One piece, or the end. */
static int give_input(struct exec_stream *s, struct error *err)
{
    const struct exec_scene *at = s->scene;
    if (s->input.len == 0) {
        s->input_ended = true;
        return sandbox_process_end_input(at->sandboxes, at->workspace, at->sandbox, s->pid, err);
    }
    struct arena *arena = arena_new_for(s->scene->memory);
    size_t len = s->input.len < PROCESS_INPUT_CHUNK ? s->input.len : PROCESS_INPUT_CHUNK;
    /* More may be added, and the buffer moved, while this piece waits for the process. */
    struct slice piece = {arena_dup(arena, s->input.data, len), len};
    int rc = sandbox_process_write(at->sandboxes, at->workspace, at->sandbox, s->pid, piece, err);
    if (rc == 0) {
        buf_consume(&s->input, len);
        s->taken += len;
    }
    arena_free(arena);
    return rc;
}

/* The client is told how far its input got, or that it got no further. */
static int tell_input(struct exec_stream *s, int given, const struct error *why, struct error *err)
{
    struct arena *arena = arena_new_for(s->scene->memory);
    if (given < 0) {
        buf_clear(&s->input);
        s->input_end = s->input_ended = false;
    }
    struct slice text = given == 0 ? exec_stdin_message(arena, s->ask.id, s->taken, s->input_ended)
                                   : exec_error_message(arena, s->ask.id, why, false, NULL);
    int rc = send_message(s, &s->in, text, err);
    arena_free(arena);
    return rc;
}

static void run_input(void *arg)
{
    struct exec_stream *s = arg;
    struct error err = {0};
    while (!s->leaving && !s->ended) {
        if (s->pid[0] == '\0' || !input_waits(s)) {
            if (co_cond_wait(s->scene->loop, &s->changed, -1, &err) < 0)
                return;
            continue;
        }
        int given = give_input(s, &err);
        if ((given < 0 && err.code == ERROR_CANCELLED) || s->leaving || s->ended ||
            tell_input(s, given, &err, &err) < 0)
            return;
    }
}

int exec_stream_input(struct exec_stream *s, struct slice data, bool end, struct error *err)
{
    if (s->input_end)
        return error_set(err, ERROR_STDIN_CLOSED, "the input of \"%s\" has ended", s->ask.id);
    if (data.len > EXEC_INPUT_MAX - s->input.len)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "%zu bytes of input wait for the process already; of at most %d, and "
                         "nothing of this message was taken",
                         s->input.len, EXEC_INPUT_MAX);
    if (data.len > 0)
        buf_add(&s->input, data.data, data.len);
    if (buf_check(&s->input, "stdin", err) < 0)
        return -1;
    s->input_end = end;
    if (s->in.task.loop == NULL)
        return task_start(s->scene->loop, &s->in.task, run_input, s, err);
    co_cond_wake_all(&s->changed);
    return 0;
}

/* --- its end --- */

static int check_started(const struct exec_stream *s, struct error *err)
{
    if (s->pid[0] == '\0')
        return error_set(err, ERROR_CONFLICT, "\"%s\" has not started yet", s->ask.id);
    return 0;
}

int exec_stream_signal(struct exec_stream *s, int signal, struct error *err)
{
    const struct exec_scene *at = s->scene;
    if (signal == SIGKILL)
        return exec_stream_cancel(s, 0, err);
    if (check_started(s, err) < 0)
        return -1;
    return sandbox_process_signal(at->sandboxes, at->workspace, at->sandbox, s->pid, signal, err);
}

static int stop(struct exec_stream *s, uint64_t grace_ms, struct error *err)
{
    const struct exec_scene *at = s->scene;
    struct agent_process process;
    struct arena *arena = arena_new_for(s->scene->memory);
    int rc = sandbox_process_stop(at->sandboxes, at->workspace, at->sandbox, s->pid, grace_ms,
                                  arena, &process, err);
    arena_free(arena);
    return rc;
}

static void run_killer(void *arg)
{
    struct exec_stream *s = arg;
    struct error err;
    if (stop(s, s->grace_ms, &err) == 0 || err.code == ERROR_CANCELLED || s->leaving || s->ended)
        return;
    struct arena *arena = arena_new_for(s->scene->memory);
    send_message(s, &s->killer, exec_error_message(arena, s->ask.id, &err, false, NULL), NULL);
    arena_free(arena);
}

int exec_stream_cancel(struct exec_stream *s, uint64_t grace_ms, struct error *err)
{
    if (check_started(s, err) < 0)
        return -1;
    if (grace_ms == 0)
        return stop(s, 0, err);
    if (s->killer.task.co != NULL) /* it has been told, and has time */
        return 0;
    s->grace_ms = grace_ms;
    return task_start(s->scene->loop, &s->killer.task, run_killer, s, err);
}

/* --- the stream --- */

const char *exec_stream_id(const struct exec_stream *s)
{
    return s->ask.id;
}

bool exec_stream_ended(const struct exec_stream *s)
{
    return s->ended;
}

int exec_stream_new(const struct exec_scene *scene, const struct exec_ask_message *message,
                    struct arena *arena, struct exec_stream **ret_stream, struct error *err)
{
    struct exec_stream *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        arena_free(arena);
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for another stream");
    }
    s->scene = scene;
    s->arena = arena;
    s->ask = *message;
    s->place = message->from;
    buf_init(&s->input, EXEC_INPUT_MAX);
    s->input.account = scene->memory;
    if (task_start(scene->loop, &s->out.task, run_output, s, err) < 0) {
        exec_stream_free(s, true);
        return -1;
    }
    *ret_stream = s;
    return 0;
}

static void side_end(struct side *side, bool gently)
{
    if (gently && side->sending)
        task_join(&side->task);
    else
        task_stop(&side->task);
}

static void end_tasks(struct exec_stream *s, bool gently)
{
    s->leaving = true;
    side_end(&s->out, gently);
    side_end(&s->in, gently);
    side_end(&s->killer, gently);
}

int exec_stream_detach(struct exec_stream *s, struct error *err)
{
    if (!s->ended && check_started(s, err) < 0)
        return -1;
    end_tasks(s, true);
    if (s->ended && s->pid[0] == '\0')
        return 0;
    return send_message(s, &s->out, exec_detached_message(s->arena, s->ask.id, &s->place), err);
}

void exec_stream_free(struct exec_stream *s, bool gently)
{
    if (s == NULL)
        return;
    end_tasks(s, gently);
    buf_release(&s->input);
    arena_free(s->arena);
    free(s);
}
