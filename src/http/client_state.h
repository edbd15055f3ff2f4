/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What client.c (sending), client_answer.c (receiving) and client_tls.c (the connection) share. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "http/chunk.h"
#include "http/client.h"
#include "http/parse.h"
#include "http/tls.h"
#include "http/tls_bridge.h"

enum {
    IN_SIZE = 64 * 1024,
    IN_SIZE_FIRST = 16 * 1024, /* grows for large heads only */
    DEFAULT_TIMEOUT_MS = 60 * 1000,
    HEAD_MAX = 64 * 1024,
    INTERIM_MAX = 16,
    COPY_MAX = 32 * 1024, /* less than this is not worth a pipe */
};

enum body_kind { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_TO_END };

struct http_client {
    struct loop *loop;
    char *address;
    char *host;
    int fd;
    struct tls_context *tls_context; /* NULL: plain HTTP */
    char *tls_name;                  /* that the certificate has to be for */
    struct tls *tls;
    struct tls_bridge *bridge; /* TLS goes on behind what was detached … */
    int bridge_fd;             /* … on this socket */
    net_wait *wait;
    void *wait_ctx;
    bool borrowed;  /* the connection came from outside, and there is no other one */
    bool reused;    /* this connection has served a request before */
    bool in_answer; /* an answer's head was read, its body maybe not */

    /* the request */
    struct buf head; /* kept, to send it again on a fresh connection */
    bool repeatable;
    bool is_head;
    bool upgrade;
    bool duplex;
    bool chunked;
    int64_t body_left; /* to be written */
    bool refused;      /* the server stopped reading */
    int64_t timeout_ms;

    /* the answer */
    struct arena *arena;
    char *in;
    size_t in_start;
    size_t in_end;
    size_t in_cap;
    enum body_kind kind;
    uint64_t left;
    struct chunk_decoder chunks;
    bool close;
};

int client_connect(struct http_client *client, struct error *err);
void client_disconnect(struct http_client *client);
/* As recv(2) and send(2), without waiting. */
ssize_t client_recv(struct http_client *client, void *to, size_t len);
ssize_t client_transmit(struct http_client *client, const char *data, size_t len);
/* Something of an answer has come, or the connection has ended. */
bool client_has_answer(struct http_client *client);
void client_end_bridge(struct http_client *client);
/* As net_write(), but ends quietly when the connection breaks: `refused`. */
int client_send_all(struct http_client *client, const char *data, size_t len, struct error *err);
