/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The answer. Head and body of a small answer leave in one system call; the head of a streamed
 * answer of known length waits for the first bytes of its body.
 */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "http/conn.h"
#include "loop/net.h"

enum {
    HEAD_ROOM = 512, /* status line and the fields that are always there */
    DRAIN_MAX = 256 * 1024,
};

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

void http_set_header(struct http_exchange *x, const char *name, const char *fmt, ...)
{
    va_list args;
    if (strcasecmp(name, "X-Request-Id") == 0)
        x->has_request_id = true;
    buf_adds(&x->fields, name);
    buf_adds(&x->fields, ": ");
    size_t start = x->fields.len;
    va_start(args, fmt);
    if (strcmp(fmt, "%s") == 0) /* most of them, and a proxied answer has many */
        buf_adds(&x->fields, va_arg(args, const char *));
    else
        buf_vaddf(&x->fields, fmt, args);
    va_end(args);
    /* A value with a line end in it would let whoever chose it write fields of his own. */
    size_t to = start;
    for (size_t from = start; from < x->fields.len; from++) {
        char c = x->fields.data[from];
        if (c != '\r' && c != '\n' && c != '\0')
            x->fields.data[to++] = c;
    }
    if (x->fields.len > start)
        x->fields.len = to;
    buf_adds(&x->fields, "\r\n");
}

void http_clear_headers(struct http_exchange *x)
{
    buf_clear(&x->fields);
    x->has_request_id = false;
}

int http_started(const struct http_exchange *x)
{
    return x->state != ANSWER_NONE;
}

/* Whether what the client still has to send is too much to read over. */
static bool must_close(const struct http_exchange *x)
{
    if (x->close || x->head.close || x->conn->server->closing || x->body_broken)
        return true;
    return !x->body_done && (x->continue_owed || x->body_left > DRAIN_MAX);
}

static struct slice build_head(struct http_exchange *x, int status, const char *type,
                               int64_t length)
{
    size_t type_len = type == NULL ? 0 : strlen(type);
    size_t cap = HEAD_ROOM + type_len + x->fields.len;
    char *head = arena_alloc(x->arena, cap);
    int n = snprintf(head, cap, "HTTP/1.1 %d %s\r\nServer: cella\r\nDate: %s\r\n", status,
                     reason_of(status), server_date(x->conn->server));
    size_t at = (size_t)n;
    if (!x->has_request_id)
        at += (size_t)snprintf(head + at, cap - at, "X-Request-Id: %s\r\n", request_id(x));
    if (type != NULL)
        at += (size_t)snprintf(head + at, cap - at, "Content-Type: %s\r\n", type);
    if (length >= 0 && status != 204 && status != 304)
        at += (size_t)snprintf(head + at, cap - at, "Content-Length: %lld\r\n", (long long)length);
    if (x->chunked)
        at += (size_t)snprintf(head + at, cap - at, "Transfer-Encoding: chunked\r\n");
    if (x->close)
        at += (size_t)snprintf(head + at, cap - at, "Connection: close\r\n");
    memcpy(head + at, x->fields.data, x->fields.len);
    at += x->fields.len;
    memcpy(head + at, "\r\n", 2);
    return (struct slice){head, at + 2};
}

/* Decides how the answer is framed, and makes its head. */
static int begin(struct http_exchange *x, int status, const char *type, int64_t length,
                 struct error *err)
{
    if (x->state != ANSWER_NONE)
        return error_set(err, ERROR_INTERNAL, "the request was answered twice");
    if (buf_check(&x->fields, "the answer's header", err) != 0 ||
        exchange_answering(x, status, length == -1 && status < 300, err) != 0)
        return -1;
    bool no_content = status == 204 || status == 304;
    x->bodiless = x->head.is_head || no_content;
    x->chunked = length < 0 && !no_content && !x->head.http10;
    x->close = must_close(x) || (length < 0 && x->head.http10);
    x->answer_left = length;
    x->state = ANSWER_STARTED;
    x->status = status;
    x->held = build_head(x, status, type, length);
    return 0;
}

/* Writes what is held back and up to three pieces more. */
static int send_out(struct http_exchange *x, const struct iovec *pieces, size_t count, bool more,
                    struct error *err)
{
    struct iovec iov[4];
    size_t n = 0;
    if (x->held.len > 0)
        iov[n++] = (struct iovec){.iov_base = (char *)x->held.data, .iov_len = x->held.len};
    for (size_t i = 0; i < count; i++)
        if (pieces[i].iov_len > 0)
            iov[n++] = pieces[i];
    x->held = (struct slice){0};
    if (n == 0)
        return 0;
    if (conn_write(x->conn, iov, n, more, err) == 0)
        return 0;
    x->cut = true;
    return -1;
}

static int send_text(struct http_exchange *x, const char *text, size_t len, bool more,
                     struct error *err)
{
    struct iovec piece = {.iov_base = (char *)text, .iov_len = len};
    return send_out(x, &piece, 1, more, err);
}

int http_reply(struct http_exchange *x, int status, const char *content_type, const void *body,
               size_t len, struct error *err)
{
    if (begin(x, status, content_type, (int64_t)len, err) != 0)
        return -1;
    x->state = ANSWER_ENDED;
    x->sent = x->bodiless ? 0 : len;
    return send_text(x, body, x->bodiless ? 0 : len, false, err);
}

/* --- streamed --- */

int http_reply_start(struct http_exchange *x, int status, const char *content_type,
                     int64_t content_length, struct error *err)
{
    if (begin(x, status, content_type, content_length, err) != 0)
        return -1;
    /* Without a length the first bytes may be long in coming (events, logs): the client should
     * know at once that it was heard. */
    bool hold = content_length != -1 && content_length != 0 && !x->bodiless;
    return hold ? 0 : send_out(x, NULL, 0, false, err);
}

/* Whether so many more bytes may be written. */
static int account(struct http_exchange *x, uint64_t len, struct error *err)
{
    if (x->state != ANSWER_STARTED)
        return error_set(err, ERROR_INTERNAL, "no answer has been started");
    if (x->cut)
        return error_set(err, ERROR_CANCELLED, "the client has gone");
    x->sent += x->bodiless ? 0 : len;
    if (x->answer_left < 0)
        return 0;
    if (len > (uint64_t)x->answer_left)
        return error_set(err, ERROR_INTERNAL, "the answer is longer than was said");
    x->answer_left -= (int64_t)len;
    return 0;
}

int http_reply_write(struct http_exchange *x, const void *data, size_t len, struct error *err)
{
    if (account(x, len, err) != 0)
        return -1;
    if (len == 0 || x->bodiless)
        return 0;
    if (!x->chunked)
        return send_text(x, data, len, false, err);
    char size[20];
    int n = snprintf(size, sizeof(size), "%zx\r\n", len);
    struct iovec pieces[] = {
        {.iov_base = size, .iov_len = (size_t)n},
        {.iov_base = (void *)data, .iov_len = len},
        {.iov_base = (char *)"\r\n", .iov_len = 2},
    };
    return send_out(x, pieces, ARRAY_LEN(pieces), false, err);
}

/* HEAD: the bytes are there to be taken all the same. */
static int drop_from(struct http_exchange *x, int from_fd, uint64_t len, struct error *err)
{
    char piece[8192];
    while (len > 0) {
        size_t most = len < sizeof(piece) ? (size_t)len : sizeof(piece);
        if (net_read_whole(http_loop(x), from_fd, piece, most,
                           x->conn->server->limits.body_timeout_ms, err) != 0)
            return -1;
        len -= most;
    }
    return 0;
}

/* By TLS every byte has to be seen. */
static int copy_from(struct http_exchange *x, int from_fd, uint64_t len, struct error *err)
{
    struct http_conn *c = x->conn;
    char *piece = server_buffer_take(c->server);
    if (piece == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a buffer");
    int rc = 0;
    while (rc == 0 && len > 0) {
        size_t most = len < HTTP_IN_SIZE ? (size_t)len : HTTP_IN_SIZE;
        ssize_t n =
            net_read(c->server->loop, from_fd, piece, most, c->server->limits.body_timeout_ms, err);
        if (n == 0)
            error_set(err, ERROR_UNAVAILABLE, "the peer closed the connection");
        rc = n > 0 ? send_text(x, piece, (size_t)n, false, err) : -1;
        len -= n > 0 ? (uint64_t)n : 0;
    }
    server_buffer_give(c->server, piece);
    return rc;
}

int http_reply_pump(struct http_exchange *x, int from_fd, uint64_t len, struct error *err)
{
    struct http_conn *c = x->conn;
    if (account(x, len, err) != 0)
        return -1;
    if (len == 0)
        return 0;
    if (x->bodiless)
        return drop_from(x, from_fd, len, err);
    char size[20];
    int n = x->chunked ? snprintf(size, sizeof(size), "%llx\r\n", (unsigned long long)len) : 0;
    if (send_text(x, size, (size_t)n, true, err) != 0)
        return -1;
    if (c->gone || (conn_is_plain(c)
                        ? net_pump_with(c->server->loop, from_fd, c->fd, len,
                                        c->server->limits.body_timeout_ms, conn_wait_either, c, err)
                        : copy_from(x, from_fd, len, err)) != 0) {
        x->cut = true;
        return c->gone ? error_set(err, ERROR_CANCELLED, "the client has gone") : -1;
    }
    return x->chunked ? send_text(x, "\r\n", 2, false, err) : 0;
}

int http_reply_end(struct http_exchange *x, struct error *err)
{
    if (account(x, 0, err) != 0)
        return -1;
    if (x->answer_left > 0 && !x->bodiless) {
        x->cut = true; /* the only way left to tell the client */
        return error_set(err, ERROR_INTERNAL, "the answer is shorter than was said");
    }
    x->state = ANSWER_ENDED;
    if (x->chunked && !x->bodiless)
        return send_text(x, "0\r\n\r\n", 5, false, err);
    return send_out(x, NULL, 0, false, err);
}
