/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HTTP/1.1 client. It reads answers as strictly as the server reads requests. A server may answer
 * before it has read the whole request, to refuse it: writing then stops without an error, and
 * http_client_answer() tells what the server said.
 */

#include "http/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http/client_state.h"
#include "loop/co.h"
#include "loop/net.h"

static int wait_on_loop(void *loop, int fd, uint32_t events, int64_t timeout_ms, struct error *err)
{
    return co_wait_fd(loop, fd, events, timeout_ms, err);
}

struct http_client *http_client_new(struct loop *loop, const char *address, const char *host,
                                    struct error *err)
{
    struct http_client *client = calloc(1, sizeof(*client));
    if (client != NULL) {
        client->loop = loop;
        client->wait = wait_on_loop;
        client->wait_ctx = loop;
        client->fd = client->bridge_fd = -1;
        client->address = strdup(address);
        client->host = strdup(host);
        client->in_cap = IN_SIZE_FIRST;
        client->in = malloc(client->in_cap);
        buf_init(&client->head, HEAD_MAX);
    }
    if (client == NULL || client->address == NULL || client->host == NULL || client->in == NULL) {
        http_client_free(client);
        error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a client");
        return NULL;
    }
    return client;
}

struct http_client *http_client_on(struct loop *loop, int fd, const char *host, net_wait *wait,
                                   void *ctx, struct error *err)
{
    struct http_client *client = http_client_new(loop, "", host, err);
    if (client == NULL)
        return NULL;
    if (wait != NULL) {
        client->wait = wait;
        client->wait_ctx = ctx;
    }
    client->fd = fd;
    client->borrowed = true;
    return client;
}

void http_client_free(struct http_client *client)
{
    if (client == NULL)
        return;
    client_disconnect(client);
    client_end_bridge(client);
    free(client->tls_name);
    buf_release(&client->head);
    arena_free(client->arena);
    free(client->address);
    free(client->host);
    free(client->in);
    free(client);
}

/* --- sending --- */

/* A connection on which the server said its end, or anything at all, since the last answer. */
static bool is_stale(const struct http_client *client)
{
    char byte;
    ssize_t n = recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || errno != EAGAIN || client->in_end > client->in_start;
}

static int connect_if_needed(struct http_client *client, struct error *err)
{
    bool usable = client->fd >= 0 && !client->in_answer && !client->close;
    if (client->borrowed) /* whether it is still good, its owner knows */
        return usable ? 0 : error_set(err, ERROR_UNAVAILABLE, "the connection is used up");
    usable = usable && !is_stale(client);
    client->reused = usable;
    if (usable)
        return 0;
    client_disconnect(client);
    return client_connect(client, err);
}

/* As net_write(), but looks at the server's answer while it waits, and ends quietly when the
 * connection breaks: what the server had to say about that is read later. */
int client_send_all(struct http_client *client, const char *data, size_t len, struct error *err)
{
    while (len > 0 && !client->refused) {
        ssize_t n = client_transmit(client, data, len);
        if (n >= 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            /* In duplex somebody reads the answer, and it may come while the body goes. */
            uint32_t events = client->duplex ? EPOLLOUT : EPOLLOUT | EPOLLIN;
            if (client->wait(client->wait_ctx, client->fd, events, client->timeout_ms, err) != 0)
                return -1;
            client->refused = !client->duplex && client_has_answer(client);
        } else if (errno != EINTR)
            client->refused = true;
    }
    return 0;
}

static void add_field(struct buf *b, const struct http_header *h)
{
    buf_adds(b, h->name);
    buf_add(b, ": ", 2);
    buf_adds(b, h->value);
    buf_add(b, "\r\n", 2);
}

static void build_head(struct http_client *client, const struct http_call *call)
{
    struct buf *b = &client->head;
    buf_clear(b);
    buf_addf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n", call->method, call->target, client->host);
    for (size_t i = 0; i < call->header_count; i++)
        add_field(b, &call->headers[i]);
    int64_t length = call->body.len > 0 ? (int64_t)call->body.len : call->content_length;
    if (length < 0)
        buf_adds(b, "Transfer-Encoding: chunked\r\n");
    else if (length > 0 || strcmp(call->method, "POST") == 0 || strcmp(call->method, "PUT") == 0)
        buf_addf(b, "Content-Length: %lld\r\n", (long long)length);
    buf_adds(b, "\r\n");
}

/* What lands in the head must not be able to end it. */
static int check_call(const struct http_call *call, struct error *err)
{
    bool bad = call->target[strcspn(call->target, " \t\r\n")] != '\0' || *call->target == '\0';
    for (size_t i = 0; i < call->header_count; i++)
        bad |= call->headers[i].value[strcspn(call->headers[i].value, "\r\n")] != '\0';
    return bad ? error_set(err, ERROR_INVALID_ARGUMENT, "a request with a line end in it") : 0;
}

int http_client_send(struct http_client *client, const struct http_call *call, struct error *err)
{
    if (check_call(call, err) != 0)
        return -1;
    client->timeout_ms = call->timeout_ms == 0 ? DEFAULT_TIMEOUT_MS : call->timeout_ms;
    build_head(client, call);
    if (buf_check(&client->head, "the request's header", err) != 0 ||
        connect_if_needed(client, err) != 0)
        return -1;
    client->is_head = strcmp(call->method, "HEAD") == 0;
    client->upgrade = call->upgrade;
    client->duplex = call->duplex;
    client->repeatable = (client->is_head || strcmp(call->method, "GET") == 0) &&
                         call->body.len == 0 && call->content_length == 0;
    client->refused = client->close = false;
    client->in_answer = true; /* until it was read, nothing else can be sent */
    client->kind = BODY_NONE;
    client->chunked = call->body.len == 0 && call->content_length < 0;
    client->body_left = call->body.len > 0 || client->chunked ? 0 : call->content_length;

    if (call->body.len > 0 && call->body.len <= HEAD_MAX - client->head.len) {
        buf_add(&client->head, call->body.data, call->body.len); /* one packet */
        return client_send_all(client, client->head.data, client->head.len, err);
    }
    if (client_send_all(client, client->head.data, client->head.len, err) != 0)
        return -1;
    return client_send_all(client, call->body.data, call->body.len, err);
}

int http_client_write(struct http_client *client, const void *data, size_t len, struct error *err)
{
    if (len == 0)
        return 0;
    if (!client->chunked) {
        if ((int64_t)len > client->body_left)
            return error_set(err, ERROR_INTERNAL, "the body is longer than was said");
        client->body_left -= (int64_t)len;
        return client_send_all(client, data, len, err);
    }
    char size[20];
    int n = snprintf(size, sizeof(size), "%zx\r\n", len);
    if (client_send_all(client, size, (size_t)n, err) != 0 ||
        client_send_all(client, data, len, err) != 0)
        return -1;
    return client_send_all(client, "\r\n", 2, err);
}
