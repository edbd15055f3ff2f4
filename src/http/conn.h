/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of the server share: server, connection, exchange.
 *
 *   server.c    accepting, limits, shutting down
 *   conn.c      a connection: idle → head → busy → idle …, or lingering before its end; one that
 *               may speak TLS begins with first → shake
 *   exchange.c  one request and its answer, on a coroutine; access to the request
 *   request_scope.c  its id and its place in a trace, and telling what came of it
 *   body.c      reading the request's body
 *   answer.c    writing the answer
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "base/buf.h"
#include "http/chunk.h"
#include "http/parse.h"
#include "http/server.h"
#include "http/tls.h"
#include "http/tls_bridge.h"
#include "loop/co.h"
#include "loop/loop.h"
#include "observe/ids.h"
#include "observe/span.h"

enum {
    HTTP_IN_SIZE = 16 * 1024, /* input buffer; grows for large heads only */
    HTTP_SPARE_BUFFERS = 32,
    HTTP_DATE_SIZE = 32,
};

struct listener;
struct http_conn;

struct http_server {
    struct loop *loop;
    http_handler *handler;
    void *ctx;
    struct http_limits limits; /* all set */
    struct tls_context *tls;   /* borrowed; NULL: plain HTTP only */
    http_recorder *recorder;   /* NULL: nobody */
    struct tracer *tracer;     /* borrowed; NULL: spans are not recorded */
    struct id_source ids;
    struct memory_budget memory; /* of all requests together */
    struct listener *listeners;
    struct http_conn *conns;
    struct http_conn *idle; /* those that make room for others, who has waited longest first */
    unsigned conn_count;
    unsigned busy_count;
    bool paused; /* nobody is accepted: it is full, and nobody makes room */
    bool closing;
    bool hurry;          /* … and not waiting for anybody */
    struct co_cond calm; /* a connection stopped being busy */
    char date[HTTP_DATE_SIZE];
    time_t date_at;
    char *spare[HTTP_SPARE_BUFFERS];
    unsigned spare_count;
};

const char *server_date(struct http_server *server);
char *server_buffer_take(struct http_server *server); /* HTTP_IN_SIZE bytes */
void server_buffer_give(struct http_server *server, char *buffer);
void server_conn_ended(struct http_server *server);
/* A connection has ended, or has no request any more: there is room for another one. */
void server_has_room(struct http_server *server);

enum conn_state {
    CONN_FIRST,  /* nothing has come: the first byte tells whether it speaks TLS */
    CONN_SHAKE,  /* it does, and both sides are not agreed yet */
    CONN_IDLE,   /* between requests: no buffer, no coroutine */
    CONN_HEAD,   /* part of a head has come */
    CONN_BUSY,   /* a coroutine has it */
    CONN_LINGER, /* answered for the last time; reads on, so that the answer is not lost */
};

/* Why a head never became whole. */
enum conn_fault { CONN_NO_FAULT, CONN_HEAD_TIMEOUT, CONN_HEAD_CUT };

struct http_conn {
    struct http_server *server;
    struct http_conn *prev;
    struct http_conn *next;
    struct http_conn *idle_prev, *idle_next;
    bool idle;    /* it is in the server's list of those: it is not CONN_BUSY, or waits for a client
                     whom nobody vouches for */
    bool vouched; /* for who has sent the request */
    int fd;
    struct tls *tls;           /* NULL: plain */
    struct tls_bridge *bridge; /* once a handler has the socket of a TLS connection … */
    int bridge_fd;             /* … which is this for it; -1: none */
    enum conn_state state;
    enum conn_fault fault;
    struct watch watch;
    struct timer timer;
    int64_t deadline;   /* 0: none. The timer may fire earlier, and is then set again */
    int64_t linger_end; /* while lingering: not beyond, whatever is sent */
    char *in;           /* input: in[in_start … in_end) is not used yet */
    size_t in_start;
    size_t in_end;
    size_t in_cap;
    struct head_scan scan;
    struct co *co;           /* while busy */
    struct co_cond readable; /* where coroutines wait for the socket: one for each direction */
    struct co_cond writable;
    uint32_t waits_for;  /* EPOLLIN, EPOLLOUT: who does */
    int64_t patience_ms; /* how long, without a byte moving */
    uint32_t burst;      /* bytes moved since others had their turn */
    bool gone;           /* the client has */
    bool upgraded;       /* the handler has the socket; nobody watches it here */
    char *peer;
};

/* may_tls: it may begin with TLS, where the server speaks it. */
int conn_open(struct http_server *server, int fd, const char *peer, bool may_tls,
              struct error *err);
void conn_close(struct http_conn *c); /* frees it. Not while it is busy */
void conn_hurry(struct http_conn *c); /* one that lingers: the server goes, it ends in a moment */
/* Ends one of server->idle: at once, or, when it has a request, as if its client had gone. */
void conn_give_way(struct http_conn *c);
/* What is waited for is of no use to anybody any more: not for long, and others go first. */
void conn_lose_patience(struct http_conn *c);
void conn_cancel(struct http_conn *c);
/* Leaves the socket to the connection's coroutine, until that ends: *ret_fd, borrowed. */
int conn_release(struct http_conn *c, int *ret_fd, struct error *err);

static inline size_t conn_buffered(const struct http_conn *c)
{
    return c->in_end - c->in_start;
}

/* All of these are for the connection's own coroutine and its tasks, of which one may read while
 * another one writes; they fail once the client has gone. */
int conn_wait(struct http_conn *c, uint32_t events, struct error *err);
/* Whether bytes can be spliced into and out of the socket. */
static inline bool conn_is_plain(const struct http_conn *c)
{
    return c->tls == NULL;
}
/* The same for pumps (net_wait): for the connection's socket or any other one. */
int conn_wait_either(void *conn, int fd, uint32_t events, int64_t timeout_ms, struct error *err);
/* From the socket, past the buffer. 0: the client closed its side. */
ssize_t conn_read(struct http_conn *c, void *to, size_t len, struct error *err);
/* Reads into the buffer, which must be empty. As conn_read(). */
ssize_t conn_fill(struct http_conn *c, struct error *err);
/* Writes it all (and changes iov). more: further bytes follow at once. */
int conn_write(struct http_conn *c, struct iovec *iov, size_t count, bool more, struct error *err);

enum answer_state { ANSWER_NONE, ANSWER_STARTED, ANSWER_ENDED };

struct http_exchange {
    struct http_conn *conn;
    struct arena *arena;
    struct memory_account *account; /* what it holds: the arena, and what handlers count */
    struct request_head head;
    const struct http_observer *observer; /* NULL: nobody */
    void *observer_ctx;

    /* the request's body */
    uint64_t body_left; /* with Content-Length */
    struct chunk_decoder chunks;
    bool body_done;
    bool body_broken;   /* where it ends can no longer be known */
    bool continue_owed; /* the client waits for 100 Continue */

    /* the answer */
    enum answer_state state;
    bool close;          /* no further request on this connection */
    bool cut;            /* the answer failed half-way */
    bool chunked;        /* … is sent in chunks */
    bool bodiless;       /* HEAD, 204, 304: whatever is written is dropped */
    int64_t answer_left; /* -1: unknown */
    struct buf fields;   /* what http_set_header() collected */
    struct slice held;   /* head that goes out with the first bytes of the body */
    bool has_request_id; /* among the fields: a program's that was passed on */
    int status;          /* of it; 0: none yet */
    uint64_t sent;       /* bytes of its body */

    /* for those who count */
    const char *route;
    unsigned api, kind;
    uint64_t begun_ns;
    struct span span;
};

/* The request's, while its coroutine runs. */
const char *request_id(const struct http_exchange *x);

/* What becomes of the connection afterwards. */
enum exchange_end { EXCHANGE_NEXT, EXCHANGE_CLOSE, EXCHANGE_CUT };

/* Serves the request whose head is in the connection's buffer, or rejects it. */
enum exchange_end exchange_run(struct http_conn *c);

/* Tells the observer that an answer is about to leave. */
int exchange_answering(struct http_exchange *x, int status, bool streamed, struct error *err);
/* The request's id and trace, from its fields; before anything is logged or answered for it. */
void request_scope_begin(struct http_exchange *x);
/* Tells whoever counts; `whole`: the answer went out as it should. */
void request_scope_end(struct http_exchange *x, bool whole);

void body_begin(struct http_exchange *x);
/* Reads and drops the rest; false when the connection cannot be used any further. */
bool body_drain(struct http_exchange *x);
