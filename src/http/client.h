/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP/1.1 client, for coroutines: one connection, one request at a time, kept alive in between
 * and opened again when the server has closed it meanwhile (only while nothing of a request that
 * is not safe to repeat has been sent).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/slice.h"
#include "http/server.h" /* struct http_header */
#include "http/tls.h"
#include "loop/loop.h"
#include "loop/net.h"

struct http_client;

/* address: as net_connect() takes it; host: for the Host field. Connects at the first request. */
struct http_client *http_client_new(struct loop *loop, const char *address, const char *host,
                                    struct error *err);
/* From now on by TLS, to a server whose certificate is for this name or address. The context
 * outlives the client; what is wrong with the other side's TLS is UPSTREAM_FAILED. What is detached
 * then ends with the client, which is to be freed on a coroutine. */
int http_client_set_tls(struct http_client *client, struct tls_context *context, const char *name,
                        struct error *err);
/* On a connected socket, which stays the caller's and must outlive the client. There is no second
 * connection: what fails, fails. wait: for who watches the socket already; NULL: nobody does. */
struct http_client *http_client_on(struct loop *loop, int fd, const char *host, net_wait *wait,
                                   void *ctx, struct error *err);
void http_client_free(struct http_client *client);

struct http_call {
    const char *method;
    const char *target;
    const struct http_header *headers; /* Host, Content-Length and Connection are added */
    size_t header_count;
    int64_t content_length; /* of the body to come; 0: none; -1: chunked */
    struct slice body;      /* sent with the fields, when it is all there is (len > 0) */
    int64_t timeout_ms;     /* without progress; 0: 60 s; -1: none */
    bool duplex;            /* another coroutine writes the body, then http_client_end() */
    bool upgrade;           /* 101 is an answer; then http_client_detach() */
};

struct http_answer {
    int status;
    int64_t content_length;            /* -1: unknown */
    const struct http_header *headers; /* until the next call on this client */
    size_t header_count;
};

/* Sends the fields (and call->body). Then http_client_write() … when content_length said there is
 * more, then http_client_answer(), then http_client_read() until 0. */
int http_client_send(struct http_client *client, const struct http_call *call, struct error *err);
int http_client_write(struct http_client *client, const void *data, size_t len, struct error *err);
/* The body is whole. http_client_answer() does it by itself unless call->duplex. */
int http_client_end(struct http_client *client, struct error *err);
int http_client_answer(struct http_client *client, struct http_answer *ret_answer,
                       struct error *err);
/* Moves the next piece of the answer's body into the (started) answer of an exchange, without
 * copying where that pays. *ret_moved is 0 at the body's end. */
int http_client_forward(struct http_client *client, struct http_exchange *x, uint64_t *ret_moved,
                        struct error *err);
/* Whether a further request could be sent on the connection: the answer was read to its end, and
 * the server said that it keeps it open. */
bool http_client_is_reusable(const struct http_client *client);

/* After a 101, or when http_client_is_reusable(): the connection's descriptor is the caller's from
 * now on; *ret_early are bytes that came behind the answer, until the next call on this client. */
int http_client_detach(struct http_client *client, struct slice *ret_early);
struct loop *http_client_loop(const struct http_client *client);
ssize_t http_client_read(struct http_client *client, void *to, size_t len, struct error *err);
/* The rest of the answer's body, NUL-terminated, to free(). PAYLOAD_TOO_LARGE over max. */
int http_client_read_all(struct http_client *client, size_t max, char **ret_body, size_t *ret_len,
                         struct error *err);
const char *http_answer_header(const struct http_answer *answer, const char *name);
