/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kernels of interpreters that can not listen on a socket, or not know who comes: they read runs
 * from their stdin, and their output is what the agent keeps of any process. So a lost connection
 * loses nothing but what the agent has dropped, and a run is one step further away than with a
 * socket.
 *
 * What is written is passed on as it is, but for marks (marks.h), which stand in both streams,
 * since only within a stream there is an order. A kernel that writes frames to stdout has its marks
 * in stderr alone. Frames are made of all that, so that nobody else has to know.
 */

#include "code/pipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/timetext.h"
#include "code/frames.h"
#include "code/marks.h"
#include "code/state.h"
#include "loop/net.h"
#include "sandbox/process_output.h"
#include "sandbox/processes.h"

struct pipe_stream {
    struct buf in;
    size_t used;    /* of `in`, by what was handed out last */
    uint32_t ended; /* number of the last run whose end was seen here */
};

struct pipe_link {
    struct process_output *output; /* NULL between runs: following counts as use of the sandbox */
    uint64_t offset;               /* … from where to go on */
    bool has_offset;
    struct pipe_stream streams[2];
    struct arena *arena;
    uint32_t told;   /* the run whose end was handed out last */
    uint32_t end[3]; /* number, count, status */
    char made[12];   /* the payload of a frame that was made */
};

/* --- opening --- */

void pipe_rest(struct context *c)
{
    struct pipe_link *p = c->pipe;
    if (p == NULL || p->output == NULL)
        return;
    p->offset = process_output_offset(p->output);
    p->has_offset = true;
    process_output_end(p->output);
    p->output = NULL;
    arena_free(p->arena);
    p->arena = NULL;
}

void pipe_close(struct context *c)
{
    struct pipe_link *p = c->pipe;
    if (p == NULL)
        return;
    pipe_rest(c);
    c->pipe = NULL;
    for (int i = 0; i < 2; i++)
        buf_release(&p->streams[i].in);
    arena_free(p->arena);
    free(p);
}

bool pipe_is_open(const struct context *c)
{
    return c->pipe != NULL && c->pipe->output != NULL;
}

/* Waits for the first words of one that was just started, in both streams: what its interpreter has
 * said before them is nobody's output. Whatever was started need not be what it
 * is called: one that says everything but hello does not go on for ever. */
static int hear_hello(struct context *c, struct error *err)
{
    struct loop *loop = c->code->loop;
    int64_t give_up = loop_now(loop) + CODE_START_MS;
    struct code_frame frame;
    uint64_t burst = 0;
    for (unsigned heard = 0;;) {
        int64_t left = give_up - loop_now(loop);
        int got = left <= 0 ? 0 : pipe_next(c, left, &frame, err);
        if (got == 0)
            return error_set(err, ERROR_TIMEOUT, "the interpreter does not answer");
        if (got < 0 && err->code == ERROR_UNAVAILABLE)
            err->code = ERROR_PORT_NOT_LISTENING; /* whoever dials finds out why */
        if (got < 0)
            return -1;
        if (frame.type == 'H' && ++heard == 2)
            return 0;
        if (net_turn(loop, &burst, frame.payload.len, err) < 0)
            return -1;
    }
}

/* Where to begin to read: what another server has read is not told again, unless that is asked for.
 */
static int find_offset(struct context *c, const struct code_place *place, const char *name,
                       char mode, uint64_t *ret_offset, struct error *err)
{
    struct pipe_link *p = c->pipe;
    struct sandboxes *sandboxes = c->code->sandboxes;
    struct agent_process process;
    struct process_log log;
    *ret_offset = 0;
    if (mode == 'F') {
        if (sandbox_process_log(sandboxes, place->workspace, place->sandbox, name, LOG_STDERR,
                                p->arena, &log, err) < 0)
            return -1;
        c->under_way = mark_last_begin(log.data);
    } else if (p->has_offset) {
        *ret_offset = p->offset;
    } else if (!c->fresh) {
        if (sandbox_process_get(sandboxes, place->workspace, place->sandbox, name, p->arena,
                                &process, err) < 0)
            return -1;
        *ret_offset = process.stdout_total + process.stderr_total;
    }
    return 0;
}

static int follow(struct context *c, const struct code_place *place, char mode, struct error *err)
{
    char name[PROCESS_NAME_SIZE];
    struct pipe_link *p = c->pipe;
    struct agent_process process;
    uint64_t offset;
    context_process_name(c, name);
    if (find_offset(c, place, name, mode, &offset, err) < 0 ||
        process_output_follow(c->code->sandboxes, place->workspace, place->sandbox, name, offset,
                              FOLLOW_HOLD, p->arena, &process, &p->output, err) < 0)
        return -1;
    if (process.state != PROCESS_RUNNING)
        return error_set(err, ERROR_PORT_NOT_LISTENING, "the interpreter has ended");
    if (c->fresh && hear_hello(c, err) < 0)
        return -1;
    c->fresh = false;
    return 0;
}

int pipe_open(struct context *c, const struct code_place *place, char mode, struct error *err)
{
    if (mode == 'F' || c->fresh)
        pipe_close(c);
    if (c->pipe == NULL) {
        c->pipe = calloc(1, sizeof(*c->pipe));
        if (c->pipe == NULL)
            return error_sys(err, "allocating");
        for (int i = 0; i < 2; i++)
            buf_init(&c->pipe->streams[i].in, CODE_FRAME_MAX + (1 << 20));
    }
    c->pipe->arena = arena_new();
    if (follow(c, place, mode, err) < 0) {
        if (err->code == ERROR_PROCESS_NOT_FOUND)
            err->code = ERROR_PORT_NOT_LISTENING;
        pipe_close(c);
        return -1;
    }
    /* Numbers of another server's runs are not to come again. */
    if (c->last_number == 0)
        c->last_number = (uint32_t)time_now_ms() & 0x3fffffff;
    return 0;
}

int pipe_send(struct context *c, const struct code_place *place, struct slice bytes,
              struct error *err)
{
    char name[PROCESS_NAME_SIZE];
    context_process_name(c, name);
    for (size_t at = 0; at < bytes.len; at += PROCESS_INPUT_CHUNK) {
        size_t left = bytes.len - at;
        struct slice piece = {bytes.data + at,
                              left < PROCESS_INPUT_CHUNK ? left : PROCESS_INPUT_CHUNK};
        if (sandbox_process_write(c->code->sandboxes, place->workspace, place->sandbox, name, piece,
                                  err) < 0)
            return -1;
    }
    return 0;
}

/* --- frames out of what was written --- */

static struct code_frame make_frame(struct pipe_link *p, char type, const uint32_t *numbers,
                                    size_t count)
{
    for (size_t i = 0; i < 4 * count; i++)
        p->made[i] = (char)(numbers[i / 4] >> (8 * (i % 4)));
    return (struct code_frame){type, {p->made, 4 * count}};
}

/* Both streams have come to the end of the same run. */
static bool end_is_there(struct pipe_link *p, struct code_frame *ret_frame)
{
    uint32_t number = p->streams[0].ended;
    if (number == 0 || p->streams[1].ended != number || p->told == number)
        return false;
    p->told = number;
    *ret_frame = make_frame(p, 'D', p->end, 3);
    return true;
}

static int next_raw(struct context *c, unsigned which, struct code_frame *ret_frame)
{
    static const uint32_t hello[3] = {CODE_PROTOCOL};
    struct pipe_link *p = c->pipe;
    struct pipe_stream *s = &p->streams[which];
    for (;;) {
        struct slice rest = {s->in.data + s->used, s->in.len - s->used};
        size_t size;
        struct mark mark = mark_next(rest, &size);
        s->used += size;
        switch (mark.kind) {
        case MARK_NONE:
            return 0;
        case MARK_TEXT:
            *ret_frame = (struct code_frame){which == 0 || c->language->frames ? 'O' : 'E',
                                             {rest.data, size}};
            return 1;
        case MARK_HELLO:
            *ret_frame = make_frame(p, 'H', hello, 3);
            return 1;
        case MARK_BEGIN:
            if (which != 0)
                break;
            *ret_frame = make_frame(p, 'S', mark.numbers, 1);
            return 1;
        case MARK_END:
            s->ended = mark.numbers[0];
            memcpy(p->end, mark.numbers, sizeof(p->end));
            if (end_is_there(p, ret_frame))
                return 1;
        }
    }
}

/* A kernel that writes frames: its end is handed out when the other stream has come there, too. */
static int next_framed(struct context *c, struct code_frame *ret_frame, struct error *err)
{
    struct pipe_link *p = c->pipe;
    struct pipe_stream *s = &p->streams[0];
    size_t size;
    for (;;) {
        struct slice rest = {s->in.data + s->used, s->in.len - s->used};
        int got = code_frame_next(rest, ret_frame, &size, err);
        if (got <= 0)
            return got;
        s->used += size;
        if (ret_frame->type != 'D')
            return 1;
        if (code_frame_numbers(ret_frame, p->end, err) < 0)
            return -1;
        s->ended = p->end[0];
        if (end_is_there(p, ret_frame))
            return 1;
    }
}

static int read_more(struct pipe_link *p, int64_t timeout_ms, struct error *err)
{
    struct output_event event;
    if (process_output_next(p->output, timeout_ms, p->arena, &event, err) < 0)
        return -1;
    if (event.kind == OUTPUT_IDLE)
        return 0;
    if (event.kind == OUTPUT_END)
        return error_set(err, ERROR_UNAVAILABLE, "the interpreter has ended");
    if (event.kind == OUTPUT_DATA) {
        struct buf *in = &p->streams[event.stream - LOG_STDOUT].in;
        buf_add(in, event.data.data, event.data.len);
        if (in->failed)
            return error_set(err, ERROR_CODE_KERNEL_FAILED, "the interpreter sends too much");
    }
    return 1;
}

int pipe_next(struct context *c, int64_t timeout_ms, struct code_frame *ret_frame,
              struct error *err)
{
    for (;;) {
        struct pipe_link *p = c->pipe;
        if (!pipe_is_open(c))
            return error_set(err, ERROR_UNAVAILABLE, "the interpreter is gone");
        for (unsigned i = 0; i < 2; i++) {
            int got = i == 0 && c->language->frames ? next_framed(c, ret_frame, err)
                                                    : next_raw(c, i, ret_frame);
            if (got != 0)
                return got;
            buf_consume(&p->streams[i].in, p->streams[i].used);
            p->streams[i].used = 0;
        }
        int got = read_more(p, timeout_ms, err);
        if (got <= 0)
            return got;
    }
}
