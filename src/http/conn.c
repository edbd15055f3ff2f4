/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection. Between requests it is this struct and nothing else; a buffer comes with the
 * first byte and a coroutine with the last byte of a head, which takes the connection from
 * CONN_BUSY back to CONN_IDLE.
 *
 * System calls are what a request costs, so the watch is left as it is wherever it does no harm:
 * it is changed only when an event comes that nobody asked for. A request that is answered without
 * waiting takes one epoll_wait, one read and one write.
 */

#include "http/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <utlist.h>

#include "base/cleanup.h"

enum {
    BURST_MAX = 4 << 20,
    LINGER_MS = 3 * 1000,       /* for a client that says nothing more … */
    LINGER_MOST_MS = 30 * 1000, /* … and for one that goes on sending */
    LINGER_LAST_MS = 1000,      /* for any, once the server goes */
    DRAIN_MS = 3 * 1000,        /* for the rest of a body that nobody wants */
};

static void serve_spawn(struct http_conn *c);
static void linger(struct http_conn *c);
static void ready(struct watch *watch, uint32_t events);

/* As recv(2) and sendmsg(2), by whatever is spoken on the connection. */
static ssize_t receive(struct http_conn *c, void *to, size_t len)
{
    return c->tls != NULL ? tls_recv(c->tls, to, len) : recv(c->fd, to, len, 0);
}

static ssize_t transmit(struct http_conn *c, struct iovec *iov, size_t count, bool more)
{
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    return c->tls != NULL ? tls_send(c->tls, iov, count)
                          : sendmsg(c->fd, &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
}

/* --- who makes room for others --- */

static void idle_begin(struct http_conn *c)
{
    if (!c->idle)
        DL_APPEND2(c->server->idle, c, idle_prev, idle_next);
    c->idle = true;
    server_has_room(c->server);
}

static void idle_end(struct http_conn *c)
{
    if (c->idle)
        DL_DELETE2(c->server->idle, c, idle_prev, idle_next);
    c->idle = false;
}

/* --- buffer --- */

static void buffer_release(struct http_conn *c)
{
    if (c->in_cap == HTTP_IN_SIZE)
        server_buffer_give(c->server, c->in);
    else
        free(c->in);
    c->in = NULL;
    c->in_start = c->in_end = c->in_cap = 0;
}

/* Makes room behind what is there. A head is let grow past its limit by one byte, so that the
 * scan sees that it is too large. */
static int buffer_room(struct http_conn *c)
{
    if (c->in == NULL) {
        c->in = server_buffer_take(c->server);
        c->in_cap = c->in == NULL ? 0 : HTTP_IN_SIZE;
        return c->in == NULL ? -1 : 0;
    }
    if (c->in_start > 0) {
        memmove(c->in, c->in + c->in_start, conn_buffered(c));
        c->in_end -= c->in_start;
        c->in_start = 0;
    }
    if (c->in_end < c->in_cap)
        return 0;
    size_t cap = c->in_cap * 2;
    char *in = malloc(cap);
    if (in == NULL)
        return -1;
    memcpy(in, c->in, c->in_end);
    size_t end = c->in_end;
    buffer_release(c);
    c->in = in;
    c->in_cap = cap;
    c->in_end = end;
    return 0;
}

/* --- time --- */

static void expired(struct timer *timer)
{
    struct http_conn *c = container_of(timer, struct http_conn, timer);
    if (c->deadline == 0)
        return;
    int64_t left = c->deadline - loop_now(c->server->loop);
    if (left > 0) {
        timer_start(c->server->loop, timer, left, expired);
        return;
    }
    if (c->state != CONN_HEAD) {
        conn_close(c);
        return;
    }
    c->fault = CONN_HEAD_TIMEOUT;
    serve_spawn(c);
}

/* The timer is touched only to make it fire earlier: requests come and go under it. */
static void set_deadline(struct http_conn *c, int64_t ms)
{
    struct loop *loop = c->server->loop;
    c->deadline = loop_now(loop) + ms;
    if (c->timer.loop == NULL || c->timer.at > c->deadline)
        timer_start(loop, &c->timer, ms, expired);
}

/* --- between requests --- */

static enum head_state look(struct http_conn *c)
{
    if (conn_buffered(c) == 0)
        return HEAD_PARTIAL;
    return head_scan(&c->scan, c->in + c->in_start, conn_buffered(c), &c->server->limits, NULL);
}

/* A record of TLS may bring more than was asked for, of which no event tells: it is taken now. */
static enum head_state look_pending(struct http_conn *c)
{
    enum head_state state;
    while ((state = look(c)) == HEAD_PARTIAL && c->tls != NULL && tls_pending(c->tls)) {
        if (buffer_room(c) != 0)
            break;
        ssize_t n = receive(c, c->in + c->in_end, c->in_cap - c->in_end);
        if (n <= 0) /* an end is found again by whoever reads next */
            break;
        c->in_end += (size_t)n;
    }
    return state;
}

static void read_head(struct http_conn *c)
{
    if (buffer_room(c) != 0) {
        conn_close(c);
        return;
    }
    ssize_t n = receive(c, c->in + c->in_end, c->in_cap - c->in_end);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (c->state == CONN_IDLE)
            buffer_release(c);
        return;
    }
    if (n <= 0) {
        if (n < 0 || c->state == CONN_IDLE) {
            conn_close(c);
            return;
        }
        c->fault = CONN_HEAD_CUT;
        serve_spawn(c);
        return;
    }
    c->in_end += (size_t)n;
    if (look_pending(c) != HEAD_PARTIAL) {
        serve_spawn(c);
        return;
    }
    if (c->state == CONN_IDLE) {
        c->state = CONN_HEAD;
        set_deadline(c, c->server->limits.header_timeout_ms);
    }
}

/* --- TLS --- */

static void shake_hands(struct http_conn *c)
{
    if (tls_handshake(c->tls) == 0) {
        c->state = CONN_IDLE;
        set_deadline(c, c->server->limits.idle_timeout_ms);
        if (watch_change(&c->watch, EPOLLIN | EPOLLRDHUP, NULL) != 0)
            conn_close(c);
        else
            read_head(c); /* the request may have come with the last word of the handshake */
    } else if (errno != EAGAIN)
        linger(c); /* so that it hears why */
    else if (watch_change(&c->watch, tls_wants(c->tls) | EPOLLRDHUP, NULL) != 0)
        conn_close(c);
}

/* Looked at, not taken: OpenSSL reads the socket itself. */
static void first_byte(struct http_conn *c)
{
    unsigned char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != 1 || byte != TLS_FIRST_BYTE) {
        c->state = CONN_IDLE;
        read_head(c);
        return;
    }
    c->tls = tls_new(c->server->tls, c->fd, NULL);
    if (c->tls == NULL) {
        conn_close(c);
        return;
    }
    c->state = CONN_SHAKE;
    set_deadline(c, c->server->limits.header_timeout_ms);
    shake_hands(c);
}

/* Waits for the next request. */
static void rest(struct http_conn *c)
{
    struct http_limits *limits = &c->server->limits;
    idle_begin(c);
    if (watch_change(&c->watch, EPOLLIN | EPOLLRDHUP, NULL) != 0) {
        conn_close(c);
        return;
    }
    if (conn_buffered(c) == 0) {
        buffer_release(c);
        c->state = CONN_IDLE;
        set_deadline(c, limits->idle_timeout_ms);
        return;
    }
    c->state = CONN_HEAD;
    set_deadline(c, limits->header_timeout_ms);
}

/* --- the end --- */

void conn_close(struct http_conn *c)
{
    struct http_server *server = c->server;
    idle_end(c);
    watch_stop(&c->watch);
    timer_stop(&c->timer);
    if (c->tls != NULL && c->state == CONN_IDLE)
        tls_close(c->tls);
    tls_free(c->tls);
    close(c->fd);
    buffer_release(c);
    *(c->prev != NULL ? &c->prev->next : &server->conns) = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    free(c->peer);
    free(c);
    server_conn_ended(server);
}

static int watch_input(struct http_conn *c)
{
    uint32_t events = EPOLLIN | EPOLLRDHUP;
    if (c->watch.loop == NULL) /* it was released */
        return watch_start(c->server->loop, &c->watch, c->fd, events, ready, NULL);
    return watch_change(&c->watch, events, NULL);
}

/* Closing a socket with unread bytes in it makes the kernel reset the connection, and the client
 * may lose the answer with that. So: say that nothing more comes, and read on for as long as more
 * is sent (a client may look for the answer at the end of its body only), within reason. */
static void linger(struct http_conn *c)
{
    buffer_release(c);
    if (c->tls != NULL && !c->gone)
        tls_close(c->tls);
    if (c->gone || shutdown(c->fd, SHUT_WR) != 0 || watch_input(c) != 0) {
        conn_close(c);
        return;
    }
    c->state = CONN_LINGER;
    idle_begin(c);
    c->linger_end = loop_now(c->server->loop) + LINGER_MOST_MS;
    if (c->server->closing)
        conn_hurry(c);
    else
        set_deadline(c, LINGER_MS);
}

void conn_hurry(struct http_conn *c)
{
    int64_t now = loop_now(c->server->loop);
    if (c->linger_end > now + LINGER_LAST_MS)
        c->linger_end = now + LINGER_LAST_MS;
    set_deadline(c, c->linger_end > now ? c->linger_end - now : 0);
}

/* An answer that is not whole must not look like one: the client sees a reset. */
static void cut(struct http_conn *c)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    conn_close(c);
}

/* Past TLS: nobody will read it. */
static void drop_input(struct http_conn *c)
{
    char *buffer = server_buffer_take(c->server);
    ssize_t n = buffer == NULL ? -1 : recv(c->fd, buffer, HTTP_IN_SIZE, 0);
    bool wait = n > 0 || (n < 0 && errno == EAGAIN);
    server_buffer_give(c->server, buffer);
    int64_t left = c->linger_end - loop_now(c->server->loop);
    if (!wait || left <= 0)
        conn_close(c);
    else if (n > 0)
        set_deadline(c, left < LINGER_MS ? left : LINGER_MS);
}

/* --- requests --- */

/* What the handler has written last is on its way still. */
static void end_bridge(struct http_conn *c, enum exchange_end end)
{
    if (c->bridge == NULL)
        return;
    shutdown(c->bridge_fd, SHUT_WR);
    if (end == EXCHANGE_CLOSE)
        tls_bridge_drain(c->bridge);
    tls_bridge_free(steal_ptr(c->bridge));
    close(steal_fd(&c->bridge_fd));
}

static void serve(void *arg)
{
    struct http_conn *c = arg;
    struct http_server *server = c->server;
    c->co = co_self(server->loop);
    server->busy_count++;
    enum exchange_end end;
    do { /* what came with the last request is served without asking the kernel */
        c->vouched = false;
        c->patience_ms = server->limits.body_timeout_ms;
        end = exchange_run(c);
    } while (end == EXCHANGE_NEXT && look_pending(c) != HEAD_PARTIAL);
    end_bridge(c, end);
    c->co = NULL;
    server->busy_count--;
    if (end == EXCHANGE_NEXT)
        rest(c);
    else if (end == EXCHANGE_CLOSE)
        linger(c);
    else
        cut(c);
    co_cond_wake_all(&server->calm);
}

static void serve_spawn(struct http_conn *c)
{
    c->state = CONN_BUSY;
    c->deadline = 0;
    idle_end(c);
    struct error err;
    if (co_spawn(c->server->loop, serve, c, NULL, &err) != 0)
        conn_close(c); /* no memory for a stack */
}

void conn_cancel(struct http_conn *c)
{
    if (c->co != NULL)
        co_cancel(c->co);
}

int conn_release(struct http_conn *c, int *ret_fd, struct error *err)
{
    watch_stop(&c->watch);
    c->upgraded = true;
    if (c->tls != NULL &&
        tls_bridge_new(c->server->loop, c->tls, c->fd, &c->bridge_fd, &c->bridge, err) != 0)
        return -1;
    *ret_fd = c->tls != NULL ? c->bridge_fd : c->fd;
    return 0;
}

static void lost(struct http_conn *c)
{
    c->gone = true;
    watch_stop(&c->watch); /* it would tell the same again and again */
    conn_cancel(c);
}

void conn_give_way(struct http_conn *c)
{
    if (c->state != CONN_BUSY) {
        conn_close(c);
        return;
    }
    idle_end(c);
    lost(c);
}

void conn_lose_patience(struct http_conn *c)
{
    c->vouched = false;
    if (c->patience_ms > DRAIN_MS)
        c->patience_ms = DRAIN_MS;
}

void http_vouch(struct http_exchange *x)
{
    x->conn->vouched = true;
}

/* While an answer waits for room, a client that closed its sending side is still there. */
static uint32_t wanted_events(uint32_t waits_for)
{
    return (waits_for & EPOLLIN ? EPOLLIN | EPOLLRDHUP : 0) | (waits_for & EPOLLOUT);
}

static void busy_event(struct http_conn *c, uint32_t events)
{
    uint32_t ended = events & (EPOLLHUP | EPOLLERR);
    uint32_t came = (events & (EPOLLIN | EPOLLRDHUP) || ended ? EPOLLIN : 0) |
                    (events & EPOLLOUT || ended ? EPOLLOUT : 0);
    uint32_t waited = c->waits_for & came;
    if (waited & EPOLLIN)
        co_cond_wake(&c->readable);
    if (waited & EPOLLOUT)
        co_cond_wake(&c->writable);
    if (waited != 0)
        return;
    if (c->waits_for != 0) /* it was for the other direction, which nobody waits for now */
        watch_change(&c->watch, wanted_events(c->waits_for), NULL);
    else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        lost(c);
    else /* bytes for later, or room that nobody needs: only listen for the client's end */
        watch_change(&c->watch, EPOLLRDHUP, NULL);
}

static void ready(struct watch *watch, uint32_t events)
{
    struct http_conn *c = container_of(watch, struct http_conn, watch);
    switch (c->state) {
    case CONN_FIRST:
        first_byte(c);
        break;
    case CONN_SHAKE:
        shake_hands(c);
        break;
    case CONN_IDLE:
    case CONN_HEAD:
        read_head(c);
        break;
    case CONN_BUSY:
        busy_event(c, events);
        break;
    case CONN_LINGER:
        drop_input(c);
        break;
    }
}

int conn_open(struct http_server *server, int fd, const char *peer, bool may_tls, struct error *err)
{
    struct http_conn *c = calloc(1, sizeof(*c));
    char *name = strdup(peer);
    if (c == NULL || name == NULL) {
        free(c);
        free(name);
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a connection");
    }
    *c = (struct http_conn){.server = server,
                            .fd = fd,
                            .bridge_fd = -1,
                            .state = may_tls && server->tls != NULL ? CONN_FIRST : CONN_IDLE,
                            .peer = name,
                            .next = server->conns};
    if (watch_start(server->loop, &c->watch, fd, EPOLLIN | EPOLLRDHUP, ready, err) != 0) {
        free(name);
        free(c);
        return -1;
    }
    if (server->conns != NULL)
        server->conns->prev = c;
    server->conns = c;
    server->conn_count++;
    idle_begin(c);
    set_deadline(c, server->limits.idle_timeout_ms);
    return 0;
}

/* --- for the coroutine --- */

static int gone(struct http_conn *c, struct error *err)
{
    c->gone = true;
    return error_set(err, ERROR_CANCELLED, "the client has gone");
}

static int wait_for(struct http_conn *c, uint32_t events, int64_t timeout_ms, struct error *err)
{
    if (c->gone)
        return gone(c, err);
    bool reading = (events & EPOLLIN) != 0;
    uint32_t event = reading ? EPOLLIN : EPOLLOUT;
    if (watch_change(&c->watch, wanted_events(c->waits_for | event), err) != 0)
        return -1;
    c->waits_for |= event;
    if (!c->vouched)
        idle_begin(c);
    int rc = co_cond_wait(c->server->loop, reading ? &c->readable : &c->writable, timeout_ms, err);
    c->waits_for &= ~event;
    if (c->waits_for == 0)
        idle_end(c);
    c->burst = 0;
    return rc;
}

int conn_wait(struct http_conn *c, uint32_t events, struct error *err)
{
    return wait_for(c, events, c->patience_ms, err);
}

int conn_wait_either(void *conn, int fd, uint32_t events, int64_t timeout_ms, struct error *err)
{
    struct http_conn *c = conn;
    if (fd == c->fd)
        return wait_for(c, events, timeout_ms, err);
    return co_wait_fd(c->server->loop, fd, events, timeout_ms, err);
}

/* A fast client must not keep the loop to itself. */
static int count_burst(struct http_conn *c, size_t n, struct error *err)
{
    c->burst += (uint32_t)(n > BURST_MAX ? BURST_MAX : n);
    if (c->burst < BURST_MAX)
        return 0;
    c->burst = 0;
    return co_sleep(c->server->loop, 0, err);
}

ssize_t conn_read(struct http_conn *c, void *to, size_t len, struct error *err)
{
    if (c->gone)
        return gone(c, err);
    for (;;) {
        ssize_t n = receive(c, to, len);
        if (n >= 0)
            return count_burst(c, (size_t)n, err) != 0 ? -1 : n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return gone(c, err);
        if (conn_wait(c, EPOLLIN, err) != 0)
            return -1;
    }
}

ssize_t conn_fill(struct http_conn *c, struct error *err)
{
    c->in_start = c->in_end = 0;
    if (buffer_room(c) != 0)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a buffer");
    ssize_t n = conn_read(c, c->in, c->in_cap, err);
    if (n > 0)
        c->in_end = (size_t)n;
    return n;
}

int conn_write(struct http_conn *c, struct iovec *iov, size_t count, bool more, struct error *err)
{
    if (c->gone)
        return gone(c, err);
    while (count > 0) {
        ssize_t n = transmit(c, iov, count, more);
        if (n < 0 && errno == EAGAIN) {
            if (conn_wait(c, EPOLLOUT, err) != 0)
                return -1;
            continue;
        }
        if (n < 0 && errno != EINTR)
            return gone(c, err);
        size_t sent = n < 0 ? 0 : (size_t)n, moved = sent;
        while (count > 0 && sent >= iov->iov_len) {
            sent -= iov->iov_len;
            iov++;
            count--;
        }
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + sent;
            iov->iov_len -= sent;
        }
        /* Whoever was cancelled and has sent all of it has said what there was to say. */
        if (count_burst(c, moved, err) != 0 && count > 0)
            return -1;
    }
    return 0;
}
