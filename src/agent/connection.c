/* SPDX-License-Identifier: Apache-2.0 */

/* Connections: bytes to frames, and back. An idle one holds no buffers. */

#include "agent/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/files.h"
#include "agent/follow.h"
#include "agent/process.h"
#include "agent/requests.h"
#include "agent/terminal.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "wire/messages.h"

enum {
    CONNECTIONS_MAX = 256,
    ACCEPT_RETRY_MS = 100, /* out of fds */
    IN_FIRST = 2048,       /* bytes asked for while it is not known how much comes */
    OUT_MAX = 4 << 20,
    OUT_ROOM = 1 << 20,
};

static size_t out_waiting(const struct connection *connection)
{
    return connection->out.len - connection->out_sent;
}

size_t connection_queued(const struct connection *connection)
{
    return out_waiting(connection);
}

bool connection_has_room(const struct connection *connection)
{
    return !connection->broken && out_waiting(connection) < OUT_ROOM;
}

static void flush_out(struct agent *agent, struct connection *connection)
{
    while (!connection->broken && out_waiting(connection) > 0) {
        ssize_t n = send(connection->watch.fd, connection->out.data + connection->out_sent,
                         out_waiting(connection), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            /* Now and then: dropping what is sent moves what is not. */
            if (connection->out_sent > OUT_ROOM) {
                buf_consume(&connection->out, connection->out_sent);
                connection->out_sent = 0;
            }
            return;
        }
        if (n < 0)
            connection->broken = true;
        else
            connection->out_sent += (size_t)n;
    }
    connection->out_sent = 0;
    if (connection->out.cap > 2 * IN_FIRST && connection->follower == NULL)
        buf_release(&connection->out);
    else
        buf_clear(&connection->out);
}

bool connection_is_idle(const struct connection *connection)
{
    return out_waiting(connection) == 0;
}

void connection_flush(struct agent *agent, struct connection *connection)
{
    if (connection->out.failed)
        connection->broken = true; /* too slow a reader, or no memory for it */
    flush_out(agent, connection);
}

void connection_send(struct agent *agent, struct connection *connection, const struct iovec *iov,
                     int pieces)
{
    struct msghdr message = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)pieces};
    ssize_t n = sendmsg(connection->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        connection->broken = true;
        return;
    }
    size_t sent = n < 0 ? 0 : (size_t)n;
    for (int i = 0; i < pieces; i++) {
        size_t skip = sent < iov[i].iov_len ? sent : iov[i].iov_len;
        buf_add(&connection->out, (const char *)iov[i].iov_base + skip, iov[i].iov_len - skip);
        sent -= skip;
    }
    if (connection->out.failed)
        connection->broken = true;
}

void connection_answer(struct agent *agent, struct connection *connection,
                       const struct wire_schema *schema, uint32_t id, const void *msg)
{
    if (connection->broken)
        return;
    wire_encode(&connection->out, schema, id, msg);
    connection_flush(agent, connection);
}

void connection_answer_error(struct agent *agent, struct connection *connection, uint32_t id,
                             const struct error *err)
{
    if (connection->broken)
        return;
    wire_encode_error(&connection->out, id, err);
    connection_flush(agent, connection);
}

/* How many bytes to ask for: the rest of the frame that has begun, or a little. */
static size_t bytes_wanted(const struct connection *connection)
{
    struct frame_header header;
    if (connection->in.len < FRAME_HEADER_SIZE ||
        frame_header_decode((const unsigned char *)connection->in.data, &header, NULL) < 0)
        return IN_FIRST;
    size_t whole = FRAME_HEADER_SIZE + (size_t)header.length;
    return whole > connection->in.len ? whole - connection->in.len : IN_FIRST;
}

static void read_in(struct connection *connection)
{
    size_t want = bytes_wanted(connection);
    char *to = buf_reserve(&connection->in, want);
    if (to == NULL) {
        connection->broken = true;
        return;
    }
    ssize_t n = recv(connection->watch.fd, to, want, MSG_DONTWAIT);
    if (n > 0)
        buf_commit(&connection->in, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        connection->broken = true;
}

/* A connection whose first frame is about files belongs to a file worker from then on. */
static bool hand_over(struct agent *agent, struct connection *connection,
                      const struct frame_header *header)
{
    if (connection->had_frames || header->type < FILE_STAT || header->type > FILE_TYPES_LAST)
        return false;
    struct error err;
    struct slice received = {connection->in.data, connection->in.len};
    if (files_start_worker(agent, connection->watch.fd, header->type, received, &err) < 0)
        connection_answer_error(agent, connection, header->id, &err);
    connection->broken = true; /* ours; the worker has its own */
    return true;
}

static void take_frames(struct agent *agent, struct connection *connection)
{
    struct frame_header header;
    struct slice payload;
    if (connection->in.len >= FRAME_HEADER_SIZE && !connection->had_frames &&
        frame_header_decode((const unsigned char *)connection->in.data, &header, NULL) == 0 &&
        hand_over(agent, connection, &header))
        return;
    while (!connection->listing && !connection->held && connection_has_room(connection)) {
        struct error err;
        int got = wire_next(&connection->in, &header, &payload, &err);
        if (got == 0)
            break;
        if (got < 0) {
            connection_answer_error(agent, connection, 0, &err);
            connection->broken = true;
            break;
        }
        connection->had_frames = true;
        request_handle(agent, connection, &header, payload);
        buf_consume(&connection->in, FRAME_HEADER_SIZE + header.length);
    }
    /* A small one stays: giving memory back while a command's child still shares it makes every
     * processor forget its translations. */
    if (connection->in.len == 0 && connection->in.cap > 2 * IN_FIRST)
        buf_release(&connection->in);
}

static void connection_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct connection *connection = container_of(watch, struct connection, watch);
    if (connection->broken)
        return;
    if (events & EPOLLOUT)
        flush_out(agent, connection);
    if (connection->listing)
        request_go_on_listing(agent, connection);
    if (connection->attachment != NULL)
        terminal_pump(agent, connection);
    if (connection->follower != NULL)
        follower_go_on(agent, connection->follower);
    if (connection->brings_limits)
        limit_folders_receive(agent, connection);
    else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && connection_has_room(connection))
        read_in(connection);
    if (!connection->broken)
        take_frames(agent, connection);
}

void connection_let_go(struct agent *agent, struct connection *connection)
{
    connection->held = false;
    if (!connection->broken)
        take_frames(agent, connection);
}

static void connection_open(struct agent *agent, int fd)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    if (connection == NULL ||
        watch_start(agent, &connection->watch, fd, EPOLLIN, connection_ready, NULL) < 0) {
        free(connection);
        close(fd);
        return;
    }
    buf_init(&connection->in, FRAME_HEADER_SIZE + WIRE_PAYLOAD_MAX + IN_FIRST);
    buf_init(&connection->out, OUT_MAX);
    connection->next = agent->connections;
    agent->connections = connection;
    agent->connection_count++;
}

void connections_accept(struct agent *agent, struct watch *watch, uint32_t events)
{
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        connection_open(agent, fd);
    else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        agent->accept_at = agent_monotonic_ms() + ACCEPT_RETRY_MS;
}

static void connection_free(struct agent *agent, struct connection *connection)
{
    processes_forget(agent, connection, 0);
    terminals_forget_connection(agent, connection);
    watch_stop(agent, &connection->watch);
    buf_release(&connection->in);
    buf_release(&connection->out);
    free(connection);
    agent->connection_count--;
}

/* What each connection is to be looked at for, now that the turn is over. */
static void update_interest(struct agent *agent, struct connection *connection)
{
    uint32_t events = 0;
    if (out_waiting(connection) > 0)
        events |= EPOLLOUT;
    if (connection_has_room(connection) && !connection->listing && !connection->held)
        events |= EPOLLIN;
    watch_change(agent, &connection->watch, events);
}

void connections_sweep(struct agent *agent)
{
    struct connection **at = &agent->connections;
    while (*at != NULL) {
        struct connection *connection = *at;
        if (connection->broken) {
            *at = connection->next;
            connection_free(agent, connection);
        } else {
            update_interest(agent, connection);
            at = &connection->next;
        }
    }
    if (agent->accept_at != 0 && agent_monotonic_ms() >= agent->accept_at)
        agent->accept_at = 0;
    bool accepting = agent->connection_count < CONNECTIONS_MAX && agent->accept_at == 0;
    watch_change(agent, &agent->listener, accepting ? EPOLLIN : 0);
}

void connections_release(struct agent *agent)
{
    for (struct connection *c = agent->connections; c != NULL; c = c->next)
        c->broken = true;
    connections_sweep(agent);
}
