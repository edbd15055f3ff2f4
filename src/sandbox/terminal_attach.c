/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Being attached to a terminal: a connection to the agent that belongs to one reader, so that a
 * slow one is slow for itself, all the way through, and nothing of its output piles up here.
 */

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/net.h"
#include "sandbox/history.h"
#include "sandbox/history_tree.h"
#include "sandbox/state.h"
#include "sandbox/terminals.h"

enum {
    ATTACH_ID = 1,
    OTHER_ID = 2,
    ANSWER_MS = 30 * 1000,
    FOREVER = -1,
    /* The largest frame that belongs here: a chunk of output, or what there is to know of a
     * session, with its command line. */
    FRAME_MAX = COMMAND_MAX + 4 * PATH_BYTES_MAX,
};

struct terminal {
    struct loop *loop;
    struct sandbox *sb;
    int fd;
    struct buf in;
    uint64_t next; /* offset that output goes on at */
};

void terminal_detach(struct terminal *t)
{
    if (t == NULL)
        return;
    close(t->fd);
    buf_release(&t->in);
    sandbox_stream_end(t->sb);
    sandbox_drop(t->sb);
    free(t);
}

static void cleanup_terminal(struct terminal **t)
{
    terminal_detach(*t);
}
#define _cleanup_terminal_ __attribute__((cleanup(cleanup_terminal)))

static int send_frame(struct terminal *t, const struct wire_schema *schema, uint32_t id,
                      const void *msg, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TERMINAL_CHUNK_MAX + 1024);
    wire_encode(&out, schema, id, msg);
    if (buf_check(&out, "request", err) < 0)
        return -1;
    return net_write(t->loop, t->fd, out.data, out.len, FOREVER, err);
}

/* The next frame; its payload is in t->in until the next call. */
static int read_frame(struct terminal *t, struct frame_header *ret_header,
                      struct slice *ret_payload, struct error *err)
{
    unsigned char bytes[FRAME_HEADER_SIZE];
    if (net_read_whole(t->loop, t->fd, bytes, sizeof(bytes), ANSWER_MS, err) < 0 ||
        frame_header_decode(bytes, ret_header, err) < 0)
        return -1;
    buf_clear(&t->in);
    char *to = buf_reserve(&t->in, ret_header->length);
    if (to == NULL)
        return error_set(err, ERROR_UNAVAILABLE, "a frame of %u bytes from the sandbox",
                         ret_header->length);
    if (net_read_whole(t->loop, t->fd, to, ret_header->length, ANSWER_MS, err) < 0)
        return -1;
    buf_commit(&t->in, ret_header->length);
    *ret_payload = (struct slice){t->in.data, t->in.len};
    if (ret_header->type == WIRE_ERROR)
        return wire_take_error(*ret_payload, err);
    return 0;
}

static int read_about(struct terminal *t, struct arena *arena, struct agent_terminal *ret_about,
                      struct error *err)
{
    struct frame_header header;
    struct slice payload;
    if (read_frame(t, &header, &payload, err) < 0)
        return -1;
    if (header.type != AGENT_TERMINAL)
        return error_set(err, ERROR_UNAVAILABLE, "unexpected answer of type %u from the sandbox",
                         header.type);
    payload.data = arena_dup(arena, payload.data, payload.len);
    return wire_decode(&agent_terminal_schema, payload, ret_about, err);
}

int terminal_attach(struct sandboxes *s, const char *workspace, const char *name,
                    const struct agent_terminal_attach *attach, struct arena *arena,
                    struct agent_terminal *ret_about, struct terminal **ret_terminal,
                    struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    _cleanup_fd_ int fd = -1;
    if (terminal_session_check(attach->session, err) < 0 ||
        sandbox_running(s, workspace, name, &sb, err) < 0 ||
        sandbox_agent_connect(sb, &fd, err) < 0)
        return -1;
    _cleanup_terminal_ struct terminal *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return error_sys(err, "attaching to a terminal");
    t->loop = s->loop;
    sb->had_terminals = true;
    t->sb = steal_ptr(sb);
    sandbox_stream_begin(t->sb);
    t->fd = steal_fd(&fd);
    buf_init(&t->in, FRAME_MAX);
    if (send_frame(t, &agent_terminal_attach_schema, ATTACH_ID, attach, err) < 0 ||
        read_about(t, arena, ret_about, err) < 0)
        return -1;
    t->next = attach->offset < ret_about->total ? attach->offset : ret_about->total;
    *ret_terminal = steal_ptr(t);
    return 0;
}

static int take_output(struct terminal *t, struct slice payload, struct terminal_event *ret_event,
                       struct error *err)
{
    struct agent_terminal_output output;
    if (wire_decode(&agent_terminal_output_schema, payload, &output, err) < 0)
        return -1;
    if (output.offset < t->next || output.offset > UINT64_MAX - output.data.len)
        return error_set(err, ERROR_UNAVAILABLE, "the sandbox sends output that makes no sense");
    *ret_event = (struct terminal_event){.kind = TERMINAL_EVENT_OUTPUT,
                                         .offset = output.offset,
                                         .dropped = output.offset - t->next,
                                         .data = output.data};
    t->next = output.offset + output.data.len;
    return 0;
}

static int take_taken(struct slice payload, struct terminal_event *ret_event, struct error *err)
{
    struct agent_terminal_taken taken;
    if (wire_decode(&agent_terminal_taken_schema, payload, &taken, err) < 0)
        return -1;
    *ret_event = (struct terminal_event){.kind = TERMINAL_EVENT_TAKEN, .taken = taken.taken};
    return 0;
}

static int take_end(struct slice payload, struct terminal_event *ret_event, struct error *err)
{
    struct terminal_event event = {.kind = TERMINAL_EVENT_END};
    if (wire_decode(&agent_terminal_exit_schema, payload, &event.end, err) < 0)
        return -1;
    *ret_event = event;
    return 0;
}

/* A session is no execution, but what it has changed is worth a commit of its own. */
static void settle(const struct terminal *t)
{
    struct sandboxes *s = t->sb->owner;
    char execution[EXECUTION_ID_SIZE];
    if (!history_enabled(s, t->sb->workspace, t->sb->id) ||
        history_seems_clean(s, t->sb->workspace, t->sb->id))
        return;
    history_run_begin(execution);
    history_run_end(s, t->sb->workspace, t->sb->id, execution, true);
}

int terminal_next(struct terminal *t, int64_t timeout_ms, struct terminal_event *ret_event,
                  struct error *err)
{
    for (;;) {
        struct frame_header header;
        struct slice payload;
        struct error why;
        if (co_wait_fd(t->loop, t->fd, EPOLLIN, timeout_ms, &why) < 0) {
            if (why.code == ERROR_TIMEOUT) {
                *ret_event = (struct terminal_event){.kind = TERMINAL_EVENT_QUIET};
                return 0;
            }
            return error_set(err, why.code, "%s", why.message);
        }
        if (read_frame(t, &header, &payload, err) < 0)
            return -1;
        switch (header.type) {
        case AGENT_TERMINAL_OUTPUT:
            return take_output(t, payload, ret_event, err);
        case AGENT_TERMINAL_TAKEN:
            return take_taken(payload, ret_event, err);
        case AGENT_TERMINAL_EXIT:
            if (take_end(payload, ret_event, err) < 0)
                return -1;
            settle(t);
            return 0;
        case WIRE_OK: /* a new size was set */
            continue;
        default:
            return error_set(err, ERROR_UNAVAILABLE, "unexpected frame of type %u from the sandbox",
                             header.type);
        }
    }
}

int terminal_input(struct terminal *t, struct slice data, struct error *err)
{
    while (data.len > 0) {
        size_t len = data.len < TERMINAL_CHUNK_MAX ? data.len : TERMINAL_CHUNK_MAX;
        struct agent_terminal_input input = {.data = {data.data, len}};
        if (send_frame(t, &agent_terminal_input_schema, OTHER_ID, &input, err) < 0)
            return -1;
        data = (struct slice){data.data + len, data.len - len};
    }
    return 0;
}

int terminal_resize(struct terminal *t, uint64_t cols, uint64_t rows, struct error *err)
{
    struct agent_terminal_resize resize = {.cols = cols, .rows = rows};
    if (cols > TERMINAL_SIZE_MAX || rows > TERMINAL_SIZE_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "cols and rows are 1 to %d",
                         TERMINAL_SIZE_MAX);
    return send_frame(t, &agent_terminal_resize_schema, OTHER_ID, &resize, err);
}
