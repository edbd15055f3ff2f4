/* SPDX-License-Identifier: Apache-2.0 */

/* The client's answers: read as strictly as the server reads requests, and passed on. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "http/client_state.h"
#include "loop/co.h"
#include "loop/net.h"

static ssize_t receive(struct http_client *client, void *to, size_t len, struct error *err)
{
    for (;;) {
        ssize_t n = client_recv(client, to, len);
        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return error_sys_as(err, ERROR_UNAVAILABLE, "reading from a peer");
        if (client->wait(client->wait_ctx, client->fd, EPOLLIN | EPOLLRDHUP, client->timeout_ms,
                         err) != 0)
            return -1;
    }
}

/* Room for more of a head. */
static int grow(struct http_client *client, struct error *err)
{
    if (client->in_end - client->in_start < client->in_cap || client->in_cap == IN_SIZE)
        return 0;
    char *in = realloc(client->in, IN_SIZE);
    if (in == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for an answer");
    client->in = in;
    client->in_cap = IN_SIZE;
    return 0;
}

static ssize_t fill(struct http_client *client, struct error *err)
{
    if (grow(client, err) != 0)
        return -1;
    if (client->in_start > 0) {
        memmove(client->in, client->in + client->in_start, client->in_end - client->in_start);
        client->in_end -= client->in_start;
        client->in_start = 0;
    }
    ssize_t n = receive(client, client->in + client->in_end, client->in_cap - client->in_end, err);
    if (n > 0)
        client->in_end += (size_t)n;
    return n;
}

static int closed(struct http_client *client, struct error *err)
{
    client_disconnect(client);
    return error_set(err, ERROR_UNAVAILABLE, "the server closed the connection");
}

/* A kept connection may have been closed by the server while the request was on its way. */
static int send_again(struct http_client *client, struct error *err)
{
    client_disconnect(client);
    client->reused = false;
    client->refused = false;
    client->in_answer = true;
    if (client_connect(client, err) != 0)
        return -1;
    return client_send_all(client, client->head.data, client->head.len, err);
}

static int read_head(struct http_client *client, struct answer_head *ret_head, struct error *err)
{
    const struct http_limits limits = {.headers_max = IN_SIZE - 1, .target_max = 8192};
    struct head_scan scan = {0};
    for (;;) {
        enum head_state state = head_scan(&scan, client->in + client->in_start,
                                          client->in_end - client->in_start, &limits, err);
        if (state == HEAD_BAD)
            return -1;
        if (state == HEAD_WHOLE)
            break;
        struct error why = {0};
        ssize_t n = fill(client, &why);
        bool nothing = client->in_end == 0 && (n == 0 || why.sys == ECONNRESET);
        if (nothing && client->reused && client->repeatable) {
            if (send_again(client, err) != 0)
                return -1;
        } else if (n == 0)
            return closed(client, err);
        else if (n < 0)
            return error_set(err, why.code, "%s", why.message);
    }
    const char *head = client->in + client->in_start + scan.start;
    if (answer_parse(client->arena, head, scan.at - scan.start, ret_head, err) != 0)
        return -1;
    client->in_start += scan.at;
    return 0;
}

static void frame_body(struct http_client *client, const struct answer_head *head)
{
    client->close = head->close || client->refused;
    client->chunks = (struct chunk_decoder){0};
    client->left = 0;
    if (client->is_head || head->status < 200 || head->status == 204 || head->status == 304)
        client->kind = BODY_NONE;
    else if (head->chunked)
        client->kind = BODY_CHUNKED;
    else if (head->content_length >= 0) {
        client->kind = BODY_LENGTH;
        client->left = (uint64_t)head->content_length;
    } else {
        client->kind = BODY_TO_END;
        client->close = true;
    }
}

static void finish_body(struct http_client *client)
{
    client->kind = BODY_NONE;
    client->in_answer = false;
    if (client->close)
        client_disconnect(client);
}

int http_client_end(struct http_client *client, struct error *err)
{
    if (client->chunked && client_send_all(client, "0\r\n\r\n", 5, err) != 0)
        return -1;
    client->chunked = false;
    if (client->body_left > 0 && !client->refused)
        return error_set(err, ERROR_INTERNAL, "the body is shorter than was said");
    return 0;
}

int http_client_answer(struct http_client *client, struct http_answer *ret_answer,
                       struct error *err)
{
    if (client->fd < 0)
        return error_set(err, ERROR_INTERNAL, "no request was sent");
    if (!client->duplex && http_client_end(client, err) != 0)
        return -1;
    arena_free(client->arena);
    client->arena = arena_new();
    struct answer_head head;
    int interim = 0;
    do { /* 100 Continue and its like */
        if (interim++ == INTERIM_MAX) {
            client_disconnect(client);
            return error_set(err, ERROR_INVALID_HTTP, "the server has no end of interim answers");
        }
        if (read_head(client, &head, err) != 0) {
            client_disconnect(client);
            return -1;
        }
    } while (head.status < 200 && head.status != 101);
    if (head.status == 101 && !client->upgrade) {
        client_disconnect(client);
        return error_set(err, ERROR_INVALID_HTTP, "the server switched protocols unasked");
    }
    frame_body(client, &head);
    *ret_answer = (struct http_answer){
        .status = head.status,
        .content_length = client->kind == BODY_LENGTH ? head.content_length
                          : client->kind == BODY_NONE ? 0
                                                      : -1,
        .headers = head.headers,
        .header_count = head.header_count,
    };
    bool switched = head.status == 101;
    if (!switched &&
        (client->kind == BODY_NONE || (client->kind == BODY_LENGTH && client->left == 0)))
        finish_body(client);
    return 0;
}

struct loop *http_client_loop(const struct http_client *client)
{
    return client->loop;
}

/* Up to len bytes, from the buffer first. 0: the connection's end. */
static ssize_t read_raw(struct http_client *client, void *to, size_t len, struct error *err)
{
    size_t buffered = client->in_end - client->in_start;
    if (buffered == 0)
        return receive(client, to, len, err);
    size_t n = buffered < len ? buffered : len;
    memcpy(to, client->in + client->in_start, n);
    client->in_start += n;
    return (ssize_t)n;
}

/* 1: bytes of the body follow; 0: its end. */
static int next_chunk(struct http_client *client, struct error *err)
{
    for (;;) {
        size_t used = 0;
        enum chunk_step step = chunk_decode(&client->chunks, client->in + client->in_start,
                                            client->in_end - client->in_start, &used, err);
        client->in_start += used;
        if (step == CHUNK_DATA || step == CHUNK_END)
            return step == CHUNK_DATA;
        if (step == CHUNK_BAD)
            return -1;
        ssize_t n = fill(client, err);
        if (n <= 0)
            return n == 0 ? closed(client, err) : -1;
    }
}

ssize_t http_client_read(struct http_client *client, void *to, size_t len, struct error *err)
{
    if (client->kind == BODY_NONE || len == 0)
        return 0;
    uint64_t most = len;
    if (client->kind == BODY_CHUNKED) {
        int more = next_chunk(client, err);
        if (more < 0)
            return -1;
        if (more == 0) {
            finish_body(client);
            return 0;
        }
        client->left = client->chunks.left;
    }
    if (client->kind != BODY_TO_END && client->left < most)
        most = client->left;
    ssize_t n = read_raw(client, to, (size_t)most, err);
    if (n < 0)
        return -1;
    if (n == 0) {
        if (client->kind != BODY_TO_END)
            return closed(client, err);
        finish_body(client);
        return 0;
    }
    if (client->kind == BODY_CHUNKED)
        chunk_took(&client->chunks, (uint64_t)n);
    else if (client->kind == BODY_LENGTH && (client->left -= (uint64_t)n) == 0)
        finish_body(client);
    return n;
}

int http_client_read_all(struct http_client *client, size_t max, char **ret_body, size_t *ret_len,
                         struct error *err)
{
    _cleanup_buf_ struct buf b = BUF_INIT(max);
    char piece[16 * 1024];
    ssize_t n;
    while ((n = http_client_read(client, piece, sizeof(piece), err)) > 0) {
        buf_add(&b, piece, (size_t)n);
        if (buf_check(&b, "the answer", err) != 0)
            return -1;
    }
    if (n < 0)
        return -1;
    size_t len = b.len;
    char *body = buf_steal(&b);
    if (body == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for an answer");
    if (ret_len != NULL)
        *ret_len = len;
    *ret_body = body;
    return 0;
}

bool http_client_is_reusable(const struct http_client *client)
{
    return client->fd >= 0 && !client->in_answer && !client->close && !client->refused &&
           !client->chunked && client->body_left == 0 && client->in_start == client->in_end;
}

/* One read's worth, copied. */
static int forward_copied(struct http_client *client, struct http_exchange *x, uint64_t most,
                          uint64_t *ret_moved, struct error *err)
{
    if (client->in_start == client->in_end) {
        ssize_t n = fill(client, err);
        if (n < 0)
            return -1;
        if (n == 0 && client->kind != BODY_TO_END)
            return closed(client, err);
        if (n == 0) {
            *ret_moved = 0;
            return 0;
        }
    }
    size_t buffered = client->in_end - client->in_start;
    size_t n = buffered < most ? buffered : (size_t)most;
    if (http_reply_write(x, client->in + client->in_start, n, err) != 0)
        return -1;
    client->in_start += n;
    *ret_moved = n;
    return 0;
}

int http_client_forward(struct http_client *client, struct http_exchange *x, uint64_t *ret_moved,
                        struct error *err)
{
    *ret_moved = 0;
    if (client->kind == BODY_NONE)
        return 0;
    if (client->kind == BODY_CHUNKED) {
        int more = next_chunk(client, err);
        if (more < 0)
            return -1;
        if (more == 0) {
            finish_body(client);
            return 0;
        }
        client->left = client->chunks.left;
    }
    uint64_t most = client->kind == BODY_TO_END ? UINT64_MAX : client->left, moved = 0;
    bool spliced =
        client->kind != BODY_TO_END && client->in_start == client->in_end && most >= COPY_MAX;
    if (spliced ? http_reply_pump(x, client->fd, most, err) != 0
                : forward_copied(client, x, most, &moved, err) != 0)
        return -1;
    if (spliced)
        moved = most;
    if (client->kind == BODY_CHUNKED)
        chunk_took(&client->chunks, moved);
    else if (client->kind == BODY_TO_END ? moved == 0 : (client->left -= moved) == 0)
        finish_body(client);
    *ret_moved = moved;
    return 0;
}

const char *http_answer_header(const struct http_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++)
        if (strcasecmp(answer->headers[i].name, name) == 0)
            return answer->headers[i].value;
    return NULL;
}
