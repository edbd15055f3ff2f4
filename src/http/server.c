/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Accepting connections, within limits, and shutting down in an orderly way. At the limit a new one
 * takes the place of the one that has kept us waiting the longest: for a request, or for the rest
 * of it, or to read its answer when nobody vouches for who has sent it. So who opens thousands and
 * is slow keeps nobody out. When none does, the listeners are left alone until a connection ends or
 * begins to: the kernel's queue holds the others.
 */

#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "http/conn.h"
#include "loop/address.h"

enum {
    ACCEPT_BATCH = 64,     /* accepted before others get their turn */
    ACCEPT_PAUSE_MS = 100, /* when descriptors have run out */
};

struct listener {
    struct http_server *server;
    struct listener *next;
    struct watch watch;
    struct timer pause;
    int fd;
};

static void fill_limits(struct http_limits *limits)
{
    const struct http_limits defaults = {
        .headers_max = HTTP_HEADERS_MAX,
        .target_max = HTTP_TARGET_MAX,
        .connections_max = HTTP_CONNECTIONS_MAX,
        .idle_timeout_ms = HTTP_IDLE_TIMEOUT_MS,
        .header_timeout_ms = HTTP_HEADER_TIMEOUT_MS,
        .body_timeout_ms = HTTP_BODY_TIMEOUT_MS,
        .body_slow_ms = HTTP_BODY_SLOW_MS,
    };
#define FILL(field) limits->field = limits->field == 0 ? defaults.field : limits->field
    FILL(headers_max);
    FILL(target_max);
    FILL(connections_max);
    FILL(idle_timeout_ms);
    FILL(header_timeout_ms);
    FILL(body_timeout_ms);
    FILL(body_slow_ms);
#undef FILL
}

struct http_server *http_server_new(struct loop *loop, http_handler *handler, void *ctx,
                                    const struct http_limits *limits, struct error *err)
{
    struct http_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        error_sys(err, "making an HTTP server");
        return NULL;
    }
    server->loop = loop;
    server->handler = handler;
    server->ctx = ctx;
    if (limits != NULL)
        server->limits = *limits;
    fill_limits(&server->limits);
    id_source_init(&server->ids);
    return server;
}

void http_server_set_tls(struct http_server *server, struct tls_context *tls)
{
    server->tls = tls;
}

void http_server_set_recorder(struct http_server *server, http_recorder *recorder,
                              struct tracer *tracer)
{
    server->recorder = recorder;
    server->tracer = tracer;
}

struct http_load http_server_load(const struct http_server *server)
{
    return (struct http_load){.connections = server->conn_count, .busy = server->busy_count};
}

struct memory_budget *http_server_memory(struct http_server *server)
{
    return &server->memory;
}

/* --- buffers and the date --- */

char *server_buffer_take(struct http_server *server)
{
    if (server->spare_count > 0)
        return server->spare[--server->spare_count];
    return malloc(HTTP_IN_SIZE);
}

void server_buffer_give(struct http_server *server, char *buffer)
{
    if (buffer != NULL && server->spare_count < HTTP_SPARE_BUFFERS)
        server->spare[server->spare_count++] = buffer;
    else
        free(buffer);
}

/* By hand: strftime() follows the locale. */
const char *server_date(struct http_server *server)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec == server->date_at)
        return server->date;
    struct tm tm;
    gmtime_r(&now.tv_sec, &tm);
    snprintf(server->date, sizeof(server->date), "%s, %02d %s %04d %02d:%02d:%02d GMT",
             days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour,
             tm.tm_min, tm.tm_sec);
    server->date_at = now.tv_sec;
    return server->date;
}

/* --- accepting --- */

static bool is_full(const struct http_server *server)
{
    return server->conn_count >= server->limits.connections_max;
}

/* One that has a request goes at the loop's next turn only: until then there is one too many. */
static bool may_accept(const struct http_server *server)
{
    return !is_full(server) ||
           (server->idle != NULL && server->conn_count == server->limits.connections_max);
}

static void listen_again(struct timer *timer)
{
    struct listener *l = container_of(timer, struct listener, pause);
    if (may_accept(l->server))
        watch_change(&l->watch, EPOLLIN, NULL);
    else
        l->server->paused = true;
}

void server_has_room(struct http_server *server)
{
    if (!server->paused)
        return;
    server->paused = false;
    for (struct listener *l = server->listeners; l != NULL; l = l->next)
        watch_change(&l->watch, EPOLLIN, NULL);
}

/* 1: one more; 0: enough for now. */
static int accept_one(struct listener *l)
{
    struct http_server *server = l->server;
    struct socket_address peer = {.len = sizeof(peer.as)};
    _cleanup_fd_ int fd = accept4(l->fd, &peer.as.any, &peer.len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            log_warn("accepting connections pauses: %m");
            watch_change(&l->watch, 0, NULL);
            timer_start(server->loop, &l->pause, ACCEPT_PAUSE_MS, listen_again);
        }
        return errno == EINTR || errno == ECONNABORTED;
    }
    if (is_full(server) && server->idle != NULL)
        conn_give_way(server->idle);
    bool local = peer.as.any.sa_family == AF_UNIX;
    if (!local) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    char name[SOCKET_ADDRESS_TEXT_SIZE];
    socket_address_text(&peer, name);
    struct error err;
    if (conn_open(server, fd, name, !local, &err) != 0) {
        log_warn("a connection from %s was dropped: %s", name, err.message);
        return 1;
    }
    steal_fd(&fd);
    meter_count(loop_meters(server->loop), METER_CONNECTIONS);
    return 1;
}

static void accept_some(struct watch *watch, uint32_t events)
{
    struct listener *l = container_of(watch, struct listener, watch);
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        if (!may_accept(l->server)) {
            l->server->paused = true;
            for (l = l->server->listeners; l != NULL; l = l->next)
                watch_change(&l->watch, 0, NULL);
            return;
        }
        if (!accept_one(l))
            return;
    }
}

void server_conn_ended(struct http_server *server)
{
    server->conn_count--;
    server_has_room(server);
    co_cond_wake_all(&server->calm);
}

int http_server_add(struct http_server *server, int listen_fd, struct error *err)
{
    struct listener *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        close(listen_fd);
        return error_sys(err, "serving a socket");
    }
    *l = (struct listener){.server = server, .next = server->listeners, .fd = listen_fd};
    /* Whoever made it may not have: a client that gives up in the queue must not stop the loop. */
    int flags = fcntl(listen_fd, F_GETFL);
    fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK);
    if (watch_start(server->loop, &l->watch, listen_fd, EPOLLIN, accept_some, err) != 0) {
        close(listen_fd);
        free(l);
        return -1;
    }
    server->listeners = l;
    return 0;
}

/* --- the end --- */

static void close_listeners(struct http_server *server)
{
    while (server->listeners != NULL) {
        struct listener *l = server->listeners;
        server->listeners = l->next;
        watch_stop(&l->watch);
        timer_stop(&l->pause);
        close(l->fd);
        free(l);
    }
}

/* Those that linger have been answered, and may lose that: they have a moment. */
static void close_idle(struct http_server *server)
{
    for (struct http_conn *c = server->idle, *next; c != NULL; c = next) {
        next = c->idle_next;
        if (c->state == CONN_LINGER)
            conn_hurry(c);
        else if (c->state != CONN_BUSY)
            conn_close(c);
    }
}

void http_server_hurry(struct http_server *server)
{
    server->hurry = true;
    co_cond_wake_all(&server->calm);
}

void http_server_shutdown(struct http_server *server, int64_t grace_ms)
{
    struct loop *loop = server->loop;
    server->closing = true; /* from now on every answer is its connection's last */
    close_listeners(server);
    close_idle(server);
    for (struct http_conn *c = server->conns; c != NULL; c = c->next)
        if (c->upgraded) /* it has no end of its own */
            conn_cancel(c);
    int64_t end = loop_now(loop) + grace_ms;
    struct error err;
    while (server->conn_count > 0) {
        int64_t left = end - loop_now(loop);
        if (left <= 0 || server->hurry || co_cond_wait(loop, &server->calm, left, &err) != 0)
            break;
    }
    for (struct http_conn *c = server->conns; c != NULL; c = c->next)
        conn_cancel(c);
    while (server->conn_count > 0)
        if (co_cond_wait(loop, &server->calm, -1, &err) != 0)
            break; /* cancelled itself */
}

void http_server_free(struct http_server *server)
{
    if (server == NULL)
        return;
    close_listeners(server);
    while (server->idle != NULL)
        conn_close(server->idle);
    while (server->spare_count > 0)
        free(server->spare[--server->spare_count]);
    free(server);
}
