/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Port 80. The Host of the first request decides where the connection goes; every further request
 * on it is read as strictly and has to be for the same host, so nothing rides behind an allowed
 * request. Requests are written anew, bodies are passed on up to their end and not a byte further;
 * what the server sends is not looked at, but for its answer to a wish for a WebSocket: only when
 * it agrees do both sides become a tunnel.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "egress/http_head.h"
#include "egress/proxy.h"
#include "egress/proxy_inject.h"
#include "loop/net.h"
#include "loop/task.h"

enum {
    HTTP_PORT = 80,
    PIECE = 16 * 1024,
    SEEN_MAX = HTTP_HEAD_MAX + 2 * PIECE,
    ANSWER_HEAD_MAX = 64 * 1024,
    LINGER_MS = 1000, /* for a client to take the last answer before the connection is reset */
    LINGER_BYTES = 256 * 1024,
};

struct session {
    struct proxied *p;
    struct loop *loop;
    struct buf seen;             /* from the client, not passed on yet */
    struct http_head head;       /* points into it */
    char host[NET_NAME_MAX + 1]; /* of the first request, as rules have it: of all of them */
    unsigned requests;           /* passed on */
    uint64_t burst;              /* passed on without a pause */
    int64_t moved_at;
    bool tunnel; /* the server agreed to a WebSocket */

    struct task back;
    bool back_ended;
    struct task forth;
    struct co_cond changed;
};

/* --- answers of our own --- */

struct refusal {
    unsigned status;
    const char *reason;
};

static struct refusal refusal_for(enum net_verdict verdict)
{
    switch (verdict) {
    case NET_FAILED_LOOKUP:
    case NET_FAILED_CONNECT:
    case NET_FAILED_TLS:
    case NET_FAILED_SECRET:
        return (struct refusal){502, "Bad Gateway"};
    case NET_REFUSED_MALFORMED:
    case NET_REFUSED_NO_NAME:
        return (struct refusal){400, "Bad Request"};
    case NET_REFUSED_LIMIT:
        return (struct refusal){429, "Too Many Requests"};
    default:
        return (struct refusal){403, "Forbidden"};
    }
}

/* Only where nothing was passed on: an answer in between would be taken for the server's. */
static void answer(struct session *s, enum net_verdict verdict, const char *detail)
{
    char body[512], head[256];
    if (s->requests > 0)
        return;
    const struct refusal refusal = refusal_for(verdict);
    int body_len =
        snprintf(body, sizeof(body), "The sandbox's network: %s%s%s\n", net_verdict_text(verdict),
                 detail != NULL ? ": " : "", detail != NULL ? detail : "");
    if (body_len >= (int)sizeof(body))
        body_len = sizeof(body) - 1;
    int head_len = snprintf(head, sizeof(head),
                            "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                            "Content-Length: %d\r\nX-Cella-Network: %s\r\n"
                            "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
                            refusal.status, refusal.reason, body_len, net_verdict_name(verdict));
    struct error err;
    if (net_write(s->loop, s->p->client, head, (size_t)head_len, PROXY_FIRST_BYTES_MS, &err) == 0)
        net_write(s->loop, s->p->client, body, (size_t)body_len, PROXY_FIRST_BYTES_MS, &err);
}

/* A connection that is closed with bytes unread is reset, and a reset may overtake the answer. */
static void linger(struct session *s)
{
    char piece[PIECE];
    struct error err;
    int64_t deadline = loop_now(s->loop) + LINGER_MS;
    shutdown(s->p->client, SHUT_WR);
    for (size_t total = 0; total < LINGER_BYTES;) {
        int64_t left = deadline - loop_now(s->loop);
        ssize_t n =
            left <= 0 ? 0 : net_read(s->loop, s->p->client, piece, sizeof(piece), left, &err);
        if (n <= 0)
            return;
        total += (size_t)n;
    }
}

/* --- requests --- */

/* More from the client. 0: it has ended. */
static ssize_t fill(struct session *s, int64_t timeout_ms, struct error *err)
{
    char *to = buf_reserve(&s->seen, PIECE);
    if (to == NULL)
        return error_set(err, ERROR_HEADERS_TOO_LARGE, "the head of the request is too large");
    ssize_t n = net_read(s->loop, s->p->client, to, PIECE, timeout_ms, err);
    if (n > 0) {
        buf_commit(&s->seen, (size_t)n);
        s->moved_at = loop_now(s->loop);
    }
    return n;
}

/* The next head. 1: it is there; 0: the client has ended between two requests; -1: it is wrong. */
static int next_head(struct session *s, struct error *err)
{
    size_t looked = 0;
    int64_t deadline = 0; /* from its first byte */
    for (;;) {
        if (s->seen.len > 0) {
            enum http_head_state state =
                http_head_read((struct slice){s->seen.data, s->seen.len}, looked, &s->head, err);
            if (state != HTTP_HEAD_MORE)
                return state == HTTP_HEAD_DONE ? 1 : -1;
            if (deadline == 0)
                deadline = loop_now(s->loop) + PROXY_FIRST_BYTES_MS;
        }
        looked = s->seen.len;
        int64_t left = deadline - loop_now(s->loop);
        int64_t idle = s->requests == 0 ? PROXY_FIRST_BYTES_MS : PROXY_IDLE_MS;
        ssize_t n = fill(s, deadline == 0 ? idle : left > 0 ? left : 0, err);
        if (n < 0)
            return -1;
        if (n == 0)
            return looked == 0 ? 0 : error_set(err, ERROR_INVALID_HTTP, "the request is cut off");
    }
}

/* The host of a request, in the form that rules have; the port has to be this one. */
static int read_host(const struct http_head *head, struct net_host *ret_host, struct error *err)
{
    uint16_t port;
    if (net_authority_parse(head->host, HTTP_PORT, ret_host, &port, err) != 0)
        return -1;
    if (port != HTTP_PORT)
        return error_set(err, ERROR_INVALID_HTTP,
                         "the request's Host names port %u, and came to port %d", port, HTTP_PORT);
    return 0;
}

/* Sends the head on, written anew. */
static int send_head(struct session *s, bool upgrade, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(2 * HTTP_HEAD_MAX);
    const struct http_head_changes changes = {.host = s->host, .upgrade = upgrade};
    http_head_write(&out, &s->head, &changes);
    if (buf_check(&out, "a request's head", err) != 0)
        return -1;
    s->requests++;
    s->p->flow.live.moved.there += out.len;
    if (net_write(s->loop, s->p->upstream, out.data, out.len, PROXY_IDLE_MS, err) != 0)
        return -1;
    return net_turn(s->loop, &s->burst, out.len, err);
}

/* Passes the body on, out of what was read and what comes. */
static int send_body(struct session *s, struct http_body *body, struct error *err)
{
    while (!body->done) {
        if (s->seen.len == 0) {
            ssize_t n = fill(s, PROXY_IDLE_MS, err);
            if (n <= 0)
                return n < 0 ? -1
                             : error_set(err, ERROR_INVALID_HTTP, "the request's body is cut off");
        }
        ptrdiff_t n = http_body_feed(body, s->seen.data, s->seen.len, err);
        if (n < 0 ||
            net_write(s->loop, s->p->upstream, s->seen.data, (size_t)n, PROXY_IDLE_MS, err) != 0)
            return -1;
        s->p->flow.live.moved.there += (size_t)n;
        buf_consume(&s->seen, (size_t)n);
        if (net_turn(s->loop, &s->burst, (size_t)n, err) != 0)
            return -1;
    }
    return 0;
}

static int send_request(struct session *s, bool upgrade, struct error *err)
{
    struct http_body body;
    http_body_init(&body, &s->head);
    if (send_head(s, upgrade, err) != 0)
        return -1;
    buf_consume(&s->seen, s->head.size);
    return send_body(s, &body, err);
}

/* Whether a further request may follow the first one: it is for the same host. */
static int check_same_host(struct session *s, struct error *err)
{
    struct net_host host;
    if (read_host(&s->head, &host, err) != 0)
        return -1;
    if (host.kind == NET_HOST_ADDRESS)
        net_address_text(&host.address, host.name);
    if (strcmp(host.name, s->host) == 0)
        return 0;
    const struct log_event event = {
        .kind = EGRESS_HTTP,
        .verdict = NET_REFUSED_MALFORMED,
        .name = host.name,
        .port = HTTP_PORT,
        .detail = "a request for another host on the same connection",
    };
    log_ring_add(&s->p->flow.guest->log, &event, wall_ms());
    return error_set(err, ERROR_FORBIDDEN, "a request for another host on the same connection");
}

/* --- both directions --- */

static void back_main(void *arg)
{
    struct session *s = arg;
    struct error err;
    net_flow(s->loop, s->p->upstream, s->p->client, PROXY_IDLE_MS, &s->moved_at,
             &s->p->flow.live.moved.back, &err);
    s->back_ended = true;
    co_cond_wake_all(&s->changed);
}

/* The first request, whose head is read, and those behind it. Returns whether the client said that
 * it was the last one. */
static bool send_requests(struct session *s)
{
    struct error err;
    bool ready = s->requests == 0; /* else it was passed on already, for a WebSocket */
    for (;;) {
        if (ready && send_request(s, false, &err) != 0)
            return false;
        if (s->head.close)
            return true;
        if (next_head(s, &err) != 1 || check_same_host(s, &err) != 0)
            return false;
        ready = true;
    }
}

static void forth_main(void *arg)
{
    struct session *s = arg;
    if (!send_requests(s))
        shutdown(s->p->upstream, SHUT_WR);
    co_cond_wake_all(&s->changed);
}

/* The server's end ends it all. The client's end leaves the server time for its last answer. */
static void converse(struct session *s)
{
    struct error err;
    s->moved_at = loop_now(s->loop);
    if (task_start(s->loop, &s->back, back_main, s, &err) != 0)
        return;
    if (task_start(s->loop, &s->forth, forth_main, s, &err) == 0)
        while (!s->back_ended && co_cond_wait(s->loop, &s->changed, -1, &err) == 0)
            ;
    task_stop(&s->forth);
    bool whole = s->back_ended;
    task_stop(&s->back);
    if (whole)
        linger(s);
}

/* --- WebSockets --- */

/* Reads the head of the server's answer and passes it on, with what came behind it. */
static int pass_answer_head(struct session *s, unsigned *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf in = BUF_INIT(ANSWER_HEAD_MAX);
    while (memmem(in.data, in.len, "\r\n\r\n", 4) == NULL) {
        char *to = buf_reserve(&in, PIECE);
        if (to == NULL)
            return error_set(err, ERROR_UPSTREAM_FAILED, "the server's answer is too long");
        ssize_t n = net_read(s->loop, s->p->upstream, to, PIECE, PROXY_IDLE_MS, err);
        if (n <= 0)
            return n < 0 ? -1 : error_set(err, ERROR_UPSTREAM_FAILED, "the server has ended");
        buf_commit(&in, (size_t)n);
    }
    *ret_status = http_answer_status((struct slice){in.data, in.len});
    s->p->flow.live.moved.back += in.len;
    return net_write(s->loop, s->p->client, in.data, in.len, PROXY_IDLE_MS, err);
}

static int negotiate(struct session *s, struct error *err)
{
    unsigned status = 0;
    if (send_request(s, true, err) != 0 || pass_answer_head(s, &status, err) != 0)
        return -1;
    s->tunnel = status == 101;
    return 0;
}

static void run_tunnel(struct session *s)
{
    struct error err;
    if (s->seen.len > 0 &&
        net_write(s->loop, s->p->upstream, s->seen.data, s->seen.len, PROXY_IDLE_MS, &err) != 0)
        return;
    s->p->flow.live.moved.there += s->seen.len;
    buf_release(&s->seen);
    proxy_relay(s->p);
}

/* --- the first request --- */

/* An address instead of a name: the rules for addresses decide, and it has to be the one that the
 * sandbox connected to. */
static enum net_verdict connect_to_address(struct session *s, const struct net_host *host)
{
    struct proxied *p = s->p;
    if (!net_address_eq(&host->address, &p->target)) {
        proxy_note(p, NET_REFUSED_NO_NAME, NULL, "Host is another address than was connected to");
        return NET_REFUSED_NO_NAME;
    }
    net_address_text(&p->target, s->host);
    enum net_verdict verdict = proxy_connect_target(p, NULL);
    if (verdict != NET_ALLOWED)
        proxy_note(p, verdict, s->host, NULL);
    return verdict;
}

static enum net_verdict connect_by_head(struct session *s)
{
    struct error err;
    struct net_host host;
    if (read_host(&s->head, &host, &err) != 0) {
        proxy_note(s->p, NET_REFUSED_MALFORMED, NULL, err.message);
        return NET_REFUSED_MALFORMED;
    }
    if (host.kind == NET_HOST_ADDRESS)
        return connect_to_address(s, &host);
    memcpy(s->host, host.name, sizeof(s->host));
    enum net_verdict verdict = proxy_judge(s->p, slice_of(host.name));
    return verdict == NET_ALLOWED ? proxy_connect(s->p) : verdict;
}

/* Whether it is for a host whose requests get a secret: then somebody else serves it, from its
 * first byte. */
static bool serve_with_secret(struct session *s)
{
    struct error err;
    struct net_host host;
    if (read_host(&s->head, &host, &err) != 0 || host.kind != NET_HOST_NAME ||
        !proxy_has_secret(s->p, host.name))
        return false;
    struct slice early = {s->seen.data, s->seen.len};
    enum net_verdict verdict = proxy_inject(s->p, host.name, early, false);
    if (verdict != NET_ALLOWED)
        answer(s, verdict, host.name);
    linger(s);
    return true;
}

static void serve(struct session *s)
{
    struct error err = {0};
    int there = next_head(s, &err);
    if (there <= 0) {
        if (there < 0) {
            proxy_note(s->p, NET_REFUSED_MALFORMED, NULL, err.message);
            answer(s, NET_REFUSED_MALFORMED, err.message);
            linger(s);
        }
        return;
    }
    if (serve_with_secret(s))
        return;
    enum net_verdict verdict = connect_by_head(s);
    if (verdict != NET_ALLOWED) {
        answer(s, verdict, s->host[0] != '\0' ? s->host : NULL);
        linger(s);
        return;
    }
    if (s->head.websocket && negotiate(s, &err) != 0)
        return;
    if (s->tunnel)
        run_tunnel(s);
    else
        converse(s);
}

static void handle(struct proxied *p)
{
    struct session *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return;
    s->p = p;
    s->loop = p->egress->loop;
    buf_init(&s->seen, SEEN_MAX);
    serve(s);
    buf_release(&s->seen);
    free(s);
}

void http_proxy_serve(struct egress *egress, int fd)
{
    proxy_serve(egress, fd, EGRESS_HTTP, HTTP_PORT, handle);
}
