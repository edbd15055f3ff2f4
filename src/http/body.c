/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The request's body. Nothing is read before the handler asks for it, so a slow handler slows its
 * client down through TCP, and a body of any size passes through one small buffer.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "http/conn.h"
#include "loop/net.h"

enum {
    DRAIN_MAX = 256 * 1024,
    DIRECT_MIN = 4096, /* smaller reads go through the buffer */
};

void body_begin(struct http_exchange *x)
{
    x->body_left = x->head.chunked ? 0 : (uint64_t)x->head.request.content_length;
    x->body_done = !x->head.chunked && x->body_left == 0;
    x->continue_owed = x->head.expects_continue && !x->body_done;
}

static int broken(struct http_exchange *x)
{
    x->body_broken = true;
    return -1;
}

/* A time-out in here is the client's, not that of something we asked. */
static int read_failed(struct http_exchange *x, ssize_t n, struct error *err)
{
    if (n == 0)
        error_set(err, ERROR_INVALID_HTTP, "the body ends too early");
    else if (err != NULL && err->code == ERROR_TIMEOUT)
        error_set(err, ERROR_REQUEST_TIMEOUT, "the body did not come in time");
    return broken(x);
}

/* A body that is read to its end comes at some pace: a byte now and then would hold a coroutine,
 * and a place among the connections, for as long as somebody likes. */
struct pace {
    int64_t since;
    uint64_t got;
};

static int keep_pace(struct http_exchange *x, struct pace *pace, size_t n, struct error *err)
{
    const int64_t late =
        loop_now(http_loop(x)) - pace->since - x->conn->server->limits.body_slow_ms;
    pace->got += n;
    if (late <= 0 || pace->got / HTTP_BODY_RATE_MIN >= (uint64_t)late / 1000 + 1)
        return 0;
    error_set(err, ERROR_REQUEST_TIMEOUT, "the body comes with less than %d bytes per second",
              HTTP_BODY_RATE_MIN);
    return broken(x);
}

static int send_continue(struct http_exchange *x, struct error *err)
{
    if (!x->continue_owed)
        return 0;
    x->continue_owed = false;
    if (conn_buffered(x->conn) > 0 || x->state != ANSWER_NONE)
        return 0; /* it did not wait for it, or knows its answer already */
    char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct iovec iov = {.iov_base = line, .iov_len = sizeof(line) - 1};
    return conn_write(x->conn, &iov, 1, false, err);
}

static size_t take_buffered(struct http_conn *c, void *to, size_t len)
{
    size_t n = conn_buffered(c) < len ? conn_buffered(c) : len;
    memcpy(to, c->in + c->in_start, n);
    c->in_start += n;
    return n;
}

/* Up to len bytes of which it is known that they belong to the body. */
static ssize_t read_raw(struct http_exchange *x, void *to, size_t len, struct error *err)
{
    struct http_conn *c = x->conn;
    if (conn_buffered(c) > 0)
        return (ssize_t)take_buffered(c, to, len);
    ssize_t n;
    if (len >= DIRECT_MIN || !x->head.chunked)
        n = conn_read(c, to, len, err);
    else {
        n = conn_fill(c, err);
        if (n > 0)
            n = (ssize_t)take_buffered(c, to, len);
    }
    return n > 0 ? n : read_failed(x, n, err);
}

/* Goes over the framing up to the next bytes of the body. 0: there are none. */
static int next_chunk(struct http_exchange *x, struct error *err)
{
    struct http_conn *c = x->conn;
    for (;;) {
        size_t used = 0;
        const char *in = conn_buffered(c) > 0 ? c->in + c->in_start : "";
        enum chunk_step step = chunk_decode(&x->chunks, in, conn_buffered(c), &used, err);
        c->in_start += used;
        if (step == CHUNK_DATA)
            return 1;
        if (step == CHUNK_BAD)
            return broken(x);
        if (step == CHUNK_END) {
            x->body_done = true;
            return 0;
        }
        ssize_t n = conn_fill(c, err);
        if (n <= 0)
            return read_failed(x, n, err);
    }
}

static int body_ready(struct http_exchange *x, struct error *err)
{
    if (x->body_broken)
        return error_set(err, ERROR_INVALID_HTTP, "the body is broken");
    return x->body_done ? 0 : send_continue(x, err);
}

static ssize_t read_chunked(struct http_exchange *x, void *to, size_t len, struct error *err)
{
    int more = next_chunk(x, err);
    if (more <= 0)
        return more;
    ssize_t n = read_raw(x, to, len < x->chunks.left ? len : (size_t)x->chunks.left, err);
    if (n > 0)
        chunk_took(&x->chunks, (uint64_t)n);
    return n;
}

ssize_t http_body_read(struct http_exchange *x, void *to, size_t len, struct error *err)
{
    if (body_ready(x, err) != 0)
        return -1;
    if (x->body_done || len == 0)
        return 0;
    if (x->head.chunked)
        return read_chunked(x, to, len, err);
    ssize_t n = read_raw(x, to, len < x->body_left ? len : (size_t)x->body_left, err);
    if (n > 0)
        x->body_left -= (uint64_t)n;
    x->body_done = x->body_left == 0;
    return n;
}

static int too_large(size_t max, struct error *err)
{
    return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "the body is larger than %zu bytes", max);
}

static int no_room(const struct buf *body, struct error *err)
{
    return body->refused ? buf_check(body, "the body", err) : too_large(body->max, err);
}

static int gather_chunks(struct http_exchange *x, struct buf *b, struct error *err)
{
    struct pace pace = {.since = loop_now(http_loop(x))};
    char piece[8192];
    ssize_t n;
    while ((n = http_body_read(x, piece, sizeof(piece), err)) > 0) {
        buf_add(b, piece, (size_t)n);
        if (b->failed)
            return no_room(b, err);
        if (keep_pace(x, &pace, (size_t)n, err) < 0)
            return -1;
    }
    return n < 0 ? -1 : 0;
}

static int gather_length(struct http_exchange *x, struct buf *b, struct error *err)
{
    struct pace pace = {.since = loop_now(http_loop(x))};
    size_t len = (size_t)x->body_left;
    if (x->body_left > b->max)
        return too_large(b->max, err);
    char *to = buf_reserve(b, len);
    if (to == NULL)
        return no_room(b, err);
    while (b->len < len) {
        ssize_t n = http_body_read(x, b->data + b->len, len - b->len, err);
        if (n < 0)
            return -1;
        buf_commit(b, (size_t)n);
        if (b->len < len && keep_pace(x, &pace, (size_t)n, err) < 0)
            return -1;
    }
    return 0;
}

int http_body_take(struct http_exchange *x, struct buf *body, struct error *err)
{
    body->account = x->account;
    return x->head.chunked ? gather_chunks(x, body, err) : gather_length(x, body, err);
}

int http_body_all(struct http_exchange *x, size_t max, struct slice *ret_body, struct error *err)
{
    _cleanup_buf_ struct buf b = BUF_INIT(max);
    if (http_body_take(x, &b, err) < 0)
        return -1;
    *ret_body = (struct slice){arena_dup(x->arena, b.data, b.len), b.len};
    return 0;
}

/* --- into a socket --- */

static int copy_to(struct http_exchange *x, int to_fd, uint64_t len, uint64_t *ret_moved,
                   struct error *err)
{
    _cleanup_free_ char *piece = malloc(HTTP_IN_SIZE);
    if (piece == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a buffer");
    uint64_t moved = 0;
    while (moved < len) {
        size_t most = len - moved < HTTP_IN_SIZE ? (size_t)(len - moved) : HTTP_IN_SIZE;
        ssize_t n = http_body_read(x, piece, most, err);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        if (net_write(http_loop(x), to_fd, piece, (size_t)n,
                      x->conn->server->limits.body_timeout_ms, err) != 0)
            return -1;
        moved += (uint64_t)n;
    }
    *ret_moved = moved;
    return 0;
}

int http_body_pump(struct http_exchange *x, int to_fd, uint64_t len, uint64_t *ret_moved,
                   struct error *err)
{
    struct http_conn *c = x->conn;
    int64_t timeout_ms = c->server->limits.body_timeout_ms;
    if (x->head.chunked || !conn_is_plain(c))
        return copy_to(x, to_fd, len, ret_moved, err);
    if (body_ready(x, err) != 0)
        return -1;
    if (len > x->body_left)
        len = x->body_left;
    uint64_t moved = conn_buffered(c) < len ? conn_buffered(c) : len;
    if (moved > 0) {
        if (net_write(c->server->loop, to_fd, c->in + c->in_start, (size_t)moved, timeout_ms,
                      err) != 0)
            return -1;
        c->in_start += (size_t)moved;
        x->body_left -= moved;
    }
    if (moved < len) {
        if (net_pump_with(c->server->loop, c->fd, to_fd, len - moved, timeout_ms, conn_wait_either,
                          c, err) != 0)
            return broken(x);
        x->body_left -= len - moved;
    }
    x->body_done = x->body_left == 0;
    *ret_moved = len;
    return 0;
}

bool body_drain(struct http_exchange *x)
{
    if (x->body_done)
        return true;
    if (x->body_broken || x->continue_owed || x->body_left > DRAIN_MAX)
        return false;
    char piece[8192];
    size_t drained = 0;
    conn_lose_patience(x->conn);
    struct pace pace = {.since = loop_now(http_loop(x))};
    while (drained <= DRAIN_MAX) {
        ssize_t n = http_body_read(x, piece, sizeof(piece), NULL);
        if (n <= 0)
            return n == 0;
        drained += (size_t)n;
        if (keep_pace(x, &pace, (size_t)n, NULL) < 0)
            return false;
    }
    return false;
}
