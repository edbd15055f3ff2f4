/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes of a session: from the pseudo-terminal into the ring, from the ring to everybody who is
 * attached, and from them back.
 *
 * Memory is bounded on every way: the ring by its size, what is queued for a connection by
 * QUEUE_MAX, input by TERMINAL_INPUT_MAX and one frame.
 */

#include "agent/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/pty.h"
#include "base/cleanup.h"

enum {
    QUEUE_MAX = 32 * 1024,     /* bytes that wait in a connection before it gets more */
    PAUSE_BEHIND = 64 * 1024,  /* how far the fastest may be behind before programs wait … */
    RESUME_BEHIND = 32 * 1024, /* … and until when */
    DRAIN_READS = 256,         /* a stranger who keeps writing does not keep us */
};

/* --- what the loop looks at --- */

/*
 * Hanging up is told by the kernel whether it is asked for or not, and as long as it lasts: that
 * would keep the loop busy for nothing, so it is told by edges then, as it is while paused.
 */
static void update_watch(struct agent *agent, struct terminal *terminal)
{
    uint32_t events = 0;
    if (!terminal->paused)
        events |= EPOLLIN;
    if (terminal->paused || terminal->hung_up)
        events |= EPOLLET;
    if (terminal->input.len > terminal->input_sent)
        events |= EPOLLOUT;
    watch_change(agent, &terminal->pty, events);
}

/* --- output --- */

/* One read; false when there is nothing more to come for now. */
static bool read_pty(struct terminal *terminal)
{
    struct iovec iov[2];
    char lost[512];
    int pieces = output_space(&terminal->output, iov);
    bool kept = pieces > 0;
    if (!kept) {
        iov[0] = (struct iovec){lost, sizeof(lost)};
        pieces = 1;
    }
    ssize_t n = readv(terminal->pty.fd, iov, pieces);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            terminal->hung_up = true;
        return n < 0 && errno == EINTR;
    }
    terminal->hung_up = false;
    if (kept)
        output_commit(&terminal->output, (size_t)n);
    else
        output_skip(&terminal->output, (size_t)n);
    return true;
}

static void tell_end(struct agent *agent, struct terminal *terminal, struct attachment *a)
{
    struct agent_terminal_exit msg = {
        .exit_code = (uint64_t)terminal->exit_code,
        .signal = (uint64_t)terminal->signal,
        .reason = terminal->reason,
        .total = terminal->output.total,
    };
    connection_answer(agent, a->connection, &agent_terminal_exit_schema, a->id, &msg);
    a->over = true;
    terminal->told = true;
}

/* Sends what it has not got yet, as far as there is room. True when something was sent. */
static bool feed(struct agent *agent, struct terminal *terminal, struct attachment *a)
{
    uint64_t before = a->offset;
    while (!a->over && !a->connection->broken && a->offset < terminal->output.total &&
           connection_queued(a->connection) < QUEUE_MAX) {
        _cleanup_buf_ struct buf data = BUF_INIT(TERMINAL_CHUNK_MAX);
        uint64_t from = output_read(&terminal->output, a->offset, TERMINAL_CHUNK_MAX, &data);
        if (data.failed) {
            a->connection->broken = true; /* no memory: it can come back */
            break;
        }
        struct agent_terminal_output msg = {.offset = from, .data = {data.data, data.len}};
        connection_answer(agent, a->connection, &agent_terminal_output_schema, a->id, &msg);
        a->offset = from + data.len;
    }
    if (a->offset == terminal->output.total) {
        a->lagging = false;
        if (terminal->finished && !a->over)
            tell_end(agent, terminal, a);
    }
    return a->offset != before;
}

/* How far the fastest of those who count is behind; 0 when nobody does. */
static uint64_t least_behind(const struct terminal *terminal)
{
    uint64_t least = terminal->awaited ? terminal->output.total : UINT64_MAX;
    for (const struct attachment *a = terminal->attachments; a != NULL; a = a->next) {
        uint64_t behind = terminal->output.total - a->offset;
        if (!a->over && !a->lagging && !a->connection->broken && behind < least)
            least = behind;
    }
    return least == UINT64_MAX ? 0 : least;
}

static void update_pause(struct agent *agent, struct terminal *terminal, bool moved)
{
    uint64_t behind = least_behind(terminal);
    if (terminal->finished || behind <= RESUME_BEHIND) {
        terminal->paused = false;
        terminal->stall_at = 0;
    } else if (terminal->paused ? moved : behind > PAUSE_BEHIND) {
        terminal->paused = true;
        terminal->stall_at = agent_monotonic_ms() + TERMINAL_STALL_MS;
    }
    update_watch(agent, terminal);
}

void terminal_feed(struct agent *agent, struct terminal *terminal)
{
    bool moved = false;
    for (struct attachment *a = terminal->attachments; a != NULL; a = a->next)
        moved |= feed(agent, terminal, a);
    update_pause(agent, terminal, moved);
}

void terminal_pump(struct agent *agent, struct connection *connection)
{
    struct attachment *a = connection->attachment;
    update_pause(agent, a->terminal, feed(agent, a->terminal, a));
}

void terminal_stalled(struct agent *agent, struct terminal *terminal)
{
    terminal->awaited = false;
    for (struct attachment *a = terminal->attachments; a != NULL; a = a->next)
        a->lagging |= terminal->output.total - a->offset > RESUME_BEHIND;
    update_pause(agent, terminal, false);
}

void terminal_drain(struct agent *agent, struct terminal *terminal)
{
    for (int i = 0; terminal->pty.fd >= 0 && i < DRAIN_READS; i++)
        if (!read_pty(terminal))
            break;
}

/* --- input --- */

bool terminal_takes_input(const struct terminal *terminal)
{
    return terminal->input.len - terminal->input_sent < TERMINAL_INPUT_MAX;
}

static void write_pty(struct agent *agent, struct terminal *terminal)
{
    struct buf *input = &terminal->input;
    while (terminal->pty.fd >= 0 && input->len > terminal->input_sent) {
        ssize_t n = write(terminal->pty.fd, input->data + terminal->input_sent,
                          input->len - terminal->input_sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n < 0 && errno != EAGAIN)
                terminal->input_sent = input->len; /* nobody will ever read it */
            break;
        }
        terminal->input_sent += (size_t)n;
    }
    if (input->len == terminal->input_sent) {
        terminal->input_sent = 0;
        buf_release(input);
    }
    update_watch(agent, terminal);
}

void terminal_write(struct agent *agent, struct terminal *terminal, struct slice data)
{
    if (terminal->ended)
        return; /* as if it had been typed a moment too late */
    if (terminal->input_sent > TERMINAL_INPUT_MAX) {
        buf_consume(&terminal->input, terminal->input_sent);
        terminal->input_sent = 0;
    }
    buf_add(&terminal->input, data.data, data.len);
    write_pty(agent, terminal);
}

void terminal_let_go(struct agent *agent, struct terminal *terminal)
{
    for (struct attachment *a = terminal->attachments; a != NULL; a = a->next)
        if (a->connection->held && terminal_takes_input(terminal))
            connection_let_go(agent, a->connection);
}

void terminal_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct terminal *terminal = container_of(watch, struct terminal, pty);
    if (events & EPOLLOUT)
        write_pty(agent, terminal);
    if (!terminal->paused)
        read_pty(terminal);
    terminal_feed(agent, terminal);
}

int terminal_resize(struct terminal *terminal, uint64_t cols, uint64_t rows, struct error *err)
{
    if (cols > TERMINAL_SIZE_MAX || rows > TERMINAL_SIZE_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "cols and rows: at most %d",
                         TERMINAL_SIZE_MAX);
    if (cols != 0)
        terminal->cols = (unsigned)cols;
    if (rows != 0)
        terminal->rows = (unsigned)rows;
    if (terminal->pty.fd >= 0)
        pty_resize(terminal->pty.fd, terminal->cols, terminal->rows);
    return 0;
}

/* --- attaching --- */

/* The place where that client's input is counted: its own, or the one unused for longest. */
static struct terminal_client *find_client(struct terminal *terminal, const char *name)
{
    struct terminal_client *oldest = NULL;
    if (name == NULL || *name == '\0')
        return NULL;
    for (struct terminal_client *c = terminal->clients; c < terminal->clients + TERMINAL_CLIENTS;
         c++) {
        if (strcmp(c->name, name) == 0)
            return c;
        bool in_use = false;
        for (struct attachment *a = terminal->attachments; a != NULL; a = a->next)
            in_use |= a->client == c;
        if (!in_use && (oldest == NULL || c->used_at < oldest->used_at))
            oldest = c;
    }
    if (oldest != NULL) {
        *oldest = (struct terminal_client){0};
        memcpy(oldest->name, name, strlen(name) + 1);
    }
    return oldest;
}

int terminal_attach(struct agent *agent, const struct request *request, struct terminal *terminal,
                    const struct agent_terminal_attach *attach, struct error *err)
{
    if (request->connection->attachment != NULL)
        return error_set(err, ERROR_CONFLICT, "this connection is attached already");
    if (agent->attached_count >= TERMINAL_ATTACHED_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "%d connections to the sandbox's terminals are open already",
                         TERMINAL_ATTACHED_MAX);
    if (terminal_resize(terminal, attach->cols, attach->rows, err) < 0)
        return -1;
    struct attachment *a = calloc(1, sizeof(*a));
    if (a == NULL)
        return error_sys(err, "attaching to a terminal");
    uint64_t start = output_start(&terminal->output), total = terminal->output.total;
    a->terminal = terminal;
    a->connection = request->connection;
    a->id = request->id;
    a->offset = attach->offset > total ? total : attach->offset;
    a->client = find_client(terminal, attach->client);
    if (a->client != NULL) {
        /* It came back: what its old connection still holds is not going to be taken. */
        for (struct attachment *other = terminal->attachments; other != NULL; other = other->next)
            if (other->client == a->client)
                other->connection->broken = true;
        a->taken = a->client->taken;
        a->client->used_at = agent_monotonic_ms();
    }
    /* More than is kept is behind by no fault of its own: programs do not wait for that. */
    a->lagging = a->offset < start;
    a->next = terminal->attachments;
    terminal->attachments = a;
    terminal->idle_at = 0;
    terminal->awaited = false;
    agent->attached_count++;
    request->connection->attachment = a;
    terminal_answer(agent, terminal, request->connection, request->id, false, a->taken);
    terminal_feed(agent, terminal);
    return 0;
}

void terminal_detach(struct agent *agent, struct attachment *attachment)
{
    struct terminal *terminal = attachment->terminal;
    struct attachment **at = &terminal->attachments;
    while (*at != attachment)
        at = &(*at)->next;
    *at = attachment->next;
    if (attachment->client != NULL)
        attachment->client->used_at = agent_monotonic_ms();
    attachment->connection->attachment = NULL;
    attachment->connection->held = false;
    free(attachment);
    agent->attached_count--;
    agent->terminals_changed = true;
    terminal_touch(terminal);
    update_pause(agent, terminal, false);
}

void terminal_refuse_attached(struct agent *agent, struct terminal *terminal,
                              const struct error *why)
{
    for (struct attachment *a = terminal->attachments; a != NULL; a = a->next) {
        if (!a->over)
            connection_answer_error(agent, a->connection, a->id, why);
        a->over = true;
    }
}
