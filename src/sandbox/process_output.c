/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Following output. Frames are read in large pieces into one buffer, which is all that a stream
 * takes here: while its reader is slow nothing more is read, the agent's socket fills, and the
 * agent (or the process itself) waits.
 */

#include "sandbox/process_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/co.h"
#include "loop/net.h"
#include "sandbox/command_limits.h"
#include "sandbox/history_state.h"
#include "sandbox/observed.h"
#include "sandbox/process_ref.h"
#include "sandbox/state.h"
#include "sandbox/unattended.h"
#include "sandbox/witness.h"

enum {
    ANSWER_MS = 30 * 1000,
    READ_SIZE = 128 * 1024,
    REQUEST_ID = 1,
};

struct process_output {
    struct loop *loop;
    struct sandbox *sb;
    int fd;
    uint64_t offset;
    bool ended;
    void *run;                         /* for the witness of one that was started here */
    bool is_exec;                      /* of a command that was started with it … */
    uint64_t pid;                      /* … and is called so; 0: nobody was told … */
    char execution[EXECUTION_ID_SIZE]; /* … but so */
    size_t used;                       /* of `in`, by the last event */
    struct buf in;
};

static int output_open(struct sandboxes *s, const char *workspace, const char *name,
                       struct process_output **ret_output, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    _cleanup_fd_ int fd = -1;
    if (sandbox_running(s, workspace, name, &sb, err) < 0 ||
        sandbox_agent_connect(sb, &fd, err) < 0)
        return -1;
    struct process_output *o = calloc(1, sizeof(*o));
    if (o == NULL)
        return error_sys(err, "following a process");
    o->loop = s->loop;
    o->sb = steal_ptr(sb);
    sandbox_stream_begin(o->sb);
    o->fd = steal_fd(&fd);
    buf_init(&o->in, FRAME_HEADER_SIZE + WIRE_PAYLOAD_MAX + READ_SIZE);
    *ret_output = o;
    return 0;
}

void process_output_end(struct process_output *o)
{
    if (o == NULL)
        return;
    if (o->is_exec && !o->ended)
        unattended_begin_later(o->sb, o->pid, o->execution, steal_ptr(o->run));
    else
        witness_end(o->sb->owner, steal_ptr(o->run), NULL);
    close(o->fd);
    buf_release(&o->in);
    sandbox_stream_end(o->sb);
    sandbox_drop(o->sb);
    free(o);
}

uint64_t process_output_offset(const struct process_output *o)
{
    return o->offset;
}

#define _cleanup_output_ _cleanup_(cleanup_process_output)

static int lost(struct error *err)
{
    return error_set(err, ERROR_UNAVAILABLE, "the connection to the sandbox was lost");
}

/* Reads what there is; waits for it at most timeout_ms. 1: something came, 0: time is over. */
static int read_more(struct process_output *o, int64_t timeout_ms, struct error *err)
{
    for (;;) {
        char *to = buf_reserve(&o->in, READ_SIZE);
        if (to == NULL)
            return lost(err);
        ssize_t n = read(o->fd, to, READ_SIZE);
        if (n > 0) {
            buf_commit(&o->in, (size_t)n);
            return 1;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return lost(err);
        struct error why;
        if (co_wait_fd(o->loop, o->fd, EPOLLIN, timeout_ms, &why) == 0)
            continue;
        if (why.code == ERROR_TIMEOUT)
            return 0;
        *err = why;
        return -1;
    }
}

/* The next frame, which stays in the buffer until the next call. 0: time is over. */
static int next_frame(struct process_output *o, int64_t timeout_ms, struct frame_header *ret_header,
                      struct slice *ret_payload, struct error *err)
{
    struct error why = {0};
    for (;;) {
        struct buf rest = {.data = o->in.data + o->used, .len = o->in.len - o->used};
        int got = wire_next(&rest, ret_header, ret_payload, &why);
        if (got > 0) {
            o->used += FRAME_HEADER_SIZE + ret_header->length;
            return 1;
        }
        if (got < 0) {
            *err = why;
            return -1;
        }
        /* Only what has begun is moved, and only when the rest of it has to be read. */
        buf_consume(&o->in, o->used);
        o->used = 0;
        got = read_more(o, timeout_ms, &why);
        if (got <= 0) {
            *err = why;
            return got;
        }
    }
}

static int take_process(const struct frame_header *header, struct slice payload,
                        struct arena *arena, struct agent_process *ret_process, struct error *err)
{
    if (header->type == WIRE_ERROR)
        return wire_take_error(payload, err);
    if (header->type != AGENT_PROCESS)
        return error_set(err, ERROR_UNAVAILABLE, "unexpected answer of type %u from the sandbox",
                         header->type);
    payload.data = arena_dup(arena, payload.data, payload.len);
    return wire_decode(&agent_process_schema, payload, ret_process, err);
}

/* Sends the request and takes the first answer. */
static int begin(struct process_output *o, const struct wire_schema *schema, const void *msg,
                 struct arena *arena, struct agent_process *ret_process, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(WIRE_PAYLOAD_MAX + FRAME_HEADER_SIZE);
    struct frame_header header;
    struct slice payload;
    wire_encode(&out, schema, REQUEST_ID, msg);
    if (buf_check(&out, "request", err) < 0 ||
        net_write(o->loop, o->fd, out.data, out.len, ANSWER_MS, err) < 0)
        return -1;
    int got = next_frame(o, ANSWER_MS, &header, &payload, err);
    if (got == 0)
        return error_set(err, ERROR_TIMEOUT, "the sandbox does not answer");
    return got < 0 ? -1 : take_process(&header, payload, arena, ret_process, err);
}

int process_output_exec(struct sandboxes *s, const char *workspace, const char *name,
                        const char *actor, const struct agent_exec *exec, struct arena *arena,
                        struct agent_process *ret_process, struct process_output **ret_output,
                        struct error *err)
{
    _cleanup_output_ struct process_output *o = NULL;
    struct agent_exec request;
    if (command_limits_prepare(s, workspace, name, &exec->limits, err) < 0 ||
        output_open(s, workspace, name, &o, err) < 0 ||
        process_exec_request(o->sb, actor, exec, arena, &request, err) < 0)
        return -1;
    request.flags = (request.flags & ~(uint64_t)EXEC_WAIT) | EXEC_FOLLOW;
    tally_command(o->sb);
    o->run = witness_exec(o->sb, actor, &request);
    snprintf(o->execution, sizeof(o->execution), "%s", request.execution);
    if (begin(o, &agent_exec_schema, &request, arena, ret_process, err) < 0) {
        o->is_exec = process_exec_failed(o->sb, &request, err);
        return -1;
    }
    history_run_started(o->sb, request.execution);
    o->is_exec = true;
    o->pid = ret_process->pid;
    *ret_output = steal_ptr(o);
    return 0;
}

int process_output_follow(struct sandboxes *s, const char *workspace, const char *name,
                          const char *process, uint64_t offset, uint64_t flags, struct arena *arena,
                          struct agent_process *ret_process, struct process_output **ret_output,
                          struct error *err)
{
    _cleanup_output_ struct process_output *o = NULL;
    struct agent_ref ref;
    if (process_ref(process, &ref, err) < 0 || output_open(s, workspace, name, &o, err) < 0)
        return -1;
    struct agent_follow request = {
        .pid = ref.pid, .name = ref.name, .offset = offset, .flags = flags};
    if (begin(o, &agent_follow_schema, &request, arena, ret_process, err) < 0)
        return -1;
    o->offset = offset;
    *ret_output = steal_ptr(o);
    return 0;
}

static int take_event(struct process_output *o, const struct frame_header *header,
                      struct slice payload, struct arena *arena, struct output_event *event,
                      struct error *err)
{
    struct agent_gap gap;
    switch (header->type) {
    case AGENT_STDOUT:
    case AGENT_STDERR:
        if (header->length > WIRE_DATA_CHUNK)
            return error_set(err, ERROR_UNAVAILABLE, "the sandbox sends too much at once");
        event->kind = OUTPUT_DATA;
        event->stream = header->type == AGENT_STDOUT ? LOG_STDOUT : LOG_STDERR;
        event->data = payload;
        o->offset += payload.len;
        return 0;
    case AGENT_GAP:
        if (wire_decode(&agent_gap_schema, payload, &gap, err) < 0)
            return -1;
        event->kind = OUTPUT_DROPPED;
        event->dropped = gap.bytes;
        o->offset += gap.bytes;
        return 0;
    default:
        if (take_process(header, payload, arena, &event->process, err) < 0)
            return -1;
        event->kind = OUTPUT_END;
        o->ended = true;
        history_process_seen(o->sb, &event->process);
        witness_end(o->sb->owner, steal_ptr(o->run), &event->process);
        if (o->is_exec)
            execution_ended(o->loop, &event->process);
        return 0;
    }
}

int process_output_next(struct process_output *o, int64_t idle_ms, struct arena *arena,
                        struct output_event *ret_event, struct error *err)
{
    struct output_event event = {.kind = OUTPUT_IDLE};
    struct frame_header header;
    struct slice payload;
    if (o->ended)
        return error_set(err, ERROR_INTERNAL, "the output has ended");
    int got = next_frame(o, idle_ms, &header, &payload, err);
    if (got < 0 || (got > 0 && take_event(o, &header, payload, arena, &event, err) < 0))
        return -1;
    event.offset = o->offset;
    *ret_event = event;
    return 0;
}
