/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections to the warden. The socket's mode keeps strangers out; the peer's credentials, which
 * the kernel vouches for, are looked at all the same.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/warden.h"

enum {
    IN_MAX = 64 * 1024, /* the largest request is a plan: far less */
    OUT_MAX = 8 << 20,  /* a list of all sandboxes */
    READ_CHUNK = 16 * 1024,
    CONNECTIONS_MAX = 64,
};

static void connection_ready(struct source *source, uint32_t events);

static bool peer_allowed(const struct warden *warden, int fd, bool egress)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    return peer.uid == 0 ||
           peer.uid == (egress ? warden->options.net.router.egress : warden->options.user);
}

/* The egress process has one connection: an earlier one is that of a process that was killed, and
 * what is unread in it was decided by rules that may not hold any more. */
static void close_egress(struct warden *warden)
{
    for (struct connection *c = warden->connections, *next; c != NULL; c = next) {
        next = c->next;
        if (c->egress)
            connection_close(c);
    }
}

static void connection_add(struct warden *warden, int fd, bool egress)
{
    struct error err;
    if (egress)
        close_egress(warden);
    struct connection *connection = calloc(1, sizeof(*connection));
    if (connection == NULL) {
        close(fd);
        return;
    }
    connection->warden = warden;
    connection->egress = egress;
    connection->number = ++warden->connections_made;
    buf_init(&connection->in, IN_MAX);
    buf_init(&connection->out, OUT_MAX);
    if (source_watch(warden->epoll_fd, &connection->source, fd, EPOLLIN, connection_ready, &err) <
        0) {
        free(connection);
        return;
    }
    connection->next = warden->connections;
    warden->connections = connection;
}

int connection_accept_all(struct warden *warden, int listen_fd, bool egress)
{
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return errno == EINTR ? 0 : -1;
        size_t count = 0;
        for (const struct connection *c = warden->connections; c != NULL; c = c->next)
            count++;
        if (count >= CONNECTIONS_MAX || !peer_allowed(warden, fd, egress)) {
            log_warn("refused a connection");
            close(fd);
            continue;
        }
        connection_add(warden, fd, egress);
    }
}

void connection_close(struct connection *connection)
{
    struct connection **at = &connection->warden->connections;
    while (*at != connection)
        at = &(*at)->next;
    *at = connection->next;
    source_close(&connection->source);
    buf_release(&connection->in);
    buf_release(&connection->out);
    free(connection);
}

struct connection *connection_find(struct warden *warden, uint64_t number)
{
    for (struct connection *c = warden->connections; c != NULL; c = c->next)
        if (c->number == number)
            return c;
    return NULL;
}

/* Those that have not said HELLO yet may be the new cellad's own, waiting for their turn. */
static void close_earlier(struct warden *warden)
{
    for (struct connection *c = warden->connections, *next; c != NULL; c = next) {
        next = c->next;
        if (!c->greeted || c->epoch == warden->epoch)
            continue;
        log_info("a new control connection takes over from an earlier one");
        connection_close(c);
    }
}

static int check_epoch(const struct warden *warden, uint64_t epoch, struct error *err)
{
    if (epoch >= warden->epoch)
        return 0;
    return error_set(err, ERROR_UNAVAILABLE,
                     "a later control connection has taken over (epoch %llu; this one: %llu)",
                     (unsigned long long)warden->epoch, (unsigned long long)epoch);
}

int connection_greet(struct connection *connection, uint64_t epoch, struct error *err)
{
    struct warden *warden = connection->warden;
    if (check_epoch(warden, epoch, err) < 0)
        return -1;
    connection->greeted = true;
    connection->epoch = epoch;
    if (epoch > warden->epoch) {
        warden->epoch = epoch;
        close_earlier(warden);
    }
    return 0;
}

int connection_check_epoch(const struct connection *connection, struct error *err)
{
    return connection->egress ? 0 : check_epoch(connection->warden, connection->epoch, err);
}

/* Fails the connection by shutting it down: the loop sees its end and closes it, so callers may
 * go on using the pointer. */
static void give_up(struct connection *connection)
{
    buf_clear(&connection->out);
    shutdown(connection->source.fd, SHUT_RDWR);
}

void connection_flush(struct connection *connection)
{
    struct buf *out = &connection->out;
    if (out->failed) {
        log_warn("a client does not read its answers");
        give_up(connection);
        return;
    }
    while (out->len > 0) {
        ssize_t n = send(connection->source.fd, out->data, out->len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            give_up(connection);
            return;
        }
        if (n < 0)
            break;
        buf_consume(out, (size_t)n);
    }
    bool wait = out->len > 0;
    if (wait != connection->waits_to_write &&
        source_change(&connection->source, EPOLLIN | (wait ? EPOLLOUT : 0), NULL) == 0)
        connection->waits_to_write = wait;
}

int connection_send_fd(struct connection *connection, const struct buf *frame, int fd,
                       struct error *err)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = frame->data, .iov_len = frame->len};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    *rights = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    if (frame->failed || connection->out.len > 0)
        return error_set(err, ERROR_UNAVAILABLE, "too many answers are waiting to be read");
    if (sendmsg(connection->source.fd, &message, MSG_NOSIGNAL) != (ssize_t)frame->len)
        return error_sys_as(err, ERROR_UNAVAILABLE, "sending a descriptor");
    return 0;
}

static int handle_frames(struct connection *connection, struct error *err)
{
    struct frame_header header;
    struct slice payload;
    int r;
    while ((r = wire_next(&connection->in, &header, &payload, err)) > 0) {
        if (request_handle(connection, &header, payload, err) < 0)
            return -1;
        buf_consume(&connection->in, FRAME_HEADER_SIZE + header.length);
    }
    return r;
}

/* 1: more may come, 0: the end. */
static int receive(struct connection *connection, struct error *err)
{
    char *to = buf_reserve(&connection->in, READ_CHUNK);
    size_t room = READ_CHUNK;
    if (to == NULL) { /* near the maximum: what is left of it */
        connection->in.failed = false;
        room = connection->in.max - connection->in.len;
        to = room == 0 ? NULL : buf_reserve(&connection->in, room);
        if (to == NULL)
            return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "a request is too large");
    }
    ssize_t n = recv(connection->source.fd, to, room, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 1 : error_sys(err, "reading a request");
    if (n == 0)
        return 0;
    buf_commit(&connection->in, (size_t)n);
    return handle_frames(connection, err) < 0 ? -1 : 1;
}

static void connection_ready(struct source *source, uint32_t events)
{
    struct connection *connection = container_of(source, struct connection, source);
    struct error err;
    if (events & EPOLLOUT)
        connection_flush(connection);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    int r = receive(connection, &err);
    if (r < 0)
        log_warn("closing a connection: %s", err.message);
    if (r <= 0)
        connection_close(connection);
}
