/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP/1.1 server. Idle connections are small state machines; a request runs on a coroutine from
 * the end of its header fields to the end of its answer.
 *
 * An exchange is one request and its answer. Everything it hands out (strings, fields, arena
 * memory) lives until the handler returns. Whatever was not read of the request's body is read and
 * dropped (up to a limit, else the connection is closed); whatever was not answered is a 500.
 *
 * The parser is strict: RFC 9112 with no leniency. A request it rejects is answered once (400, 408,
 * 411, 413, 414, 417, 431, 501 or 505, with the error envelope of http_reply_error()) and the
 * connection closed; nothing after it is read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "loop/loop.h"

struct http_server;
struct http_exchange;

/* Called on a coroutine. A -1 becomes an error answer when the answer has not begun, and cuts the
 * connection when it has. */
typedef int http_handler(struct http_exchange *x, void *ctx, struct error *err);

struct http_limits { /* 0: the value in base/limits.h */
    size_t headers_max;
    size_t target_max;
    unsigned connections_max;
    int64_t idle_timeout_ms;
    int64_t header_timeout_ms;
    int64_t body_timeout_ms;
    int64_t body_slow_ms;
};

struct http_server *http_server_new(struct loop *loop, http_handler *handler, void *ctx,
                                    const struct http_limits *limits, struct error *err);
/* Speaks TLS as well, on the same ports, with whoever begins with it (not on unix sockets). Before
 * http_server_add(); borrowed. */
struct tls_context;
void http_server_set_tls(struct http_server *server, struct tls_context *tls);
/* Serves connections of a listening socket (taken over). May be called several times. */
int http_server_add(struct http_server *server, int listen_fd, struct error *err);
/* Closes the listeners and idle connections, lets requests end for up to grace_ms, then cancels
 * them. Clients that are still sending when they are answered have a second to find the answer.
 * Called on a coroutine; when it returns, nothing runs any more. */
void http_server_shutdown(struct http_server *server, int64_t grace_ms);
/* Has a shutdown that is under way wait no longer. */
void http_server_hurry(struct http_server *server);
void http_server_free(struct http_server *server);

/* --- watching --- */

/* Who wants to know what becomes of an exchange. Set by a handler, for the one it serves. */
struct http_observer {
    /* Before the first byte of an answer leaves. `streamed`: it has no end yet (its length is not
     * known, or it is an upgrade). -1: it must not leave, and whoever answers fails with *err; not
     * heeded for errors (status 400 and above), or the client would get no answer at all. */
    int (*answering)(void *ctx, int status, bool streamed, struct error *err);
    /* After the last byte, or when there will be none. Always called, once. `whole`: the client got
     * all of an answer. */
    void (*ended)(void *ctx, bool whole);
};

/* ctx lives at least as long as the exchange's arena. */
void http_observe(struct http_exchange *x, const struct http_observer *observer, void *ctx);

/*
 * Every request has an id: the client's X-Request-Id, when that is 1 to REQUEST_ID_MAX letters,
 * digits and ._:- , or one that is made. It is in every answer, and in the errand of the coroutine
 * (base/errand.h), with the request's place in a trace.
 */

/* What came of a request. Strings live no longer than the call that they are told in. */
struct http_summary {
    const struct http_request *request; /* its strings are "" when it could not be read */
    const char *route;                  /* as http_set_route() said; NULL: it did not */
    unsigned api, kind;                 /* the same; 0 */
    int status;                         /* 0: cut before an answer began */
    bool cut;                           /* … or in the middle of it */
    uint64_t sent;                      /* bytes of the body */
    double seconds;
};

/* Told of each request that is over, on its coroutine; ctx is the handler's. */
typedef void http_recorder(struct http_exchange *x, const struct http_summary *summary, void *ctx);
/* tracer (borrowed, may be NULL): records spans (observe/span.h). */
struct tracer;
void http_server_set_recorder(struct http_server *server, http_recorder *recorder,
                              struct tracer *tracer);
/* How many connections there are, and requests under way. */
struct http_load {
    unsigned connections, busy;
};
struct http_load http_server_load(const struct http_server *server);
/* How much memory all requests together may hold, and do hold. */
struct memory_budget *http_server_memory(struct http_server *server);

/* --- the request --- */

struct http_header {
    const char *name; /* as sent; compare without case */
    const char *value;
};

struct http_request {
    const char *method;
    const char *target; /* as sent */
    const char *path;   /* still percent-encoded, without the query */
    const char *query;  /* after the '?'; "" when there is none */
    const char *host;
    const struct http_header *headers;
    size_t header_count;
    int64_t content_length; /* -1: chunked; 0: no body */
    const char *peer;       /* "127.0.0.1:4711", "unix" */
};

const struct http_request *http_request(const struct http_exchange *x);
struct arena *http_arena(struct http_exchange *x);
/* What the request holds, its arena included; good until its end. */
struct memory_account *http_memory(const struct http_exchange *x);
/* It is somebody else who asks, for whom the peer stands; as long as the exchange's arena. */
void http_set_peer(struct http_exchange *x, const char *peer);
struct loop *http_loop(const struct http_exchange *x);
/* Which row of which table serves it, for http_recorder. */
void http_set_route(struct http_exchange *x, const char *route, unsigned api, unsigned kind);

/* The value of a field (the first one), or NULL. */
const char *http_header(const struct http_exchange *x, const char *name);

/* A query parameter, percent-decoded into the arena; NULL when it is not there. '+' is a space.
 * Fails with INVALID_ARGUMENT on a broken escape or a NUL. */
int http_query(struct http_exchange *x, const char *name, const char **ret_value,
               struct error *err);
/* The same for a parameter that may be there several times: the one with this index, from 0. */
int http_query_nth(struct http_exchange *x, const char *name, size_t index, const char **ret_value,
                   struct error *err);

/* The same for a body of application/x-www-form-urlencoded, NUL-terminated. */
int http_form_field(struct arena *arena, const char *form, const char *name, size_t index,
                    const char **ret_value, struct error *err);

/* Percent-decodes into the arena (NUL-terminated, and *ret has the length). A decoded NUL is
 * INVALID_ARGUMENT. '+' stays. */
int http_decode(struct arena *arena, struct slice text, struct slice *ret, struct error *err);

/* It is known who asks: while his connection is waited for it keeps its place, however many others
 * want one. Otherwise the one that has kept the server waiting the longest makes room when there is
 * none, and its request fails as if its client had gone. */
void http_vouch(struct http_exchange *x);

/* Whether the request came by TLS. */
bool http_is_tls(const struct http_exchange *x);

/* Whether the Accept field names this type first or alone ("application/octet-stream"). */
int http_accepts(const struct http_exchange *x, const char *type);
/* Whether the Content-Type is this one, parameters aside. */
int http_content_is(const struct http_exchange *x, const char *type);

/* Reads some of the body, decoded from chunks; 0 at its end. The first read sends 100 Continue to
 * a client that waits for it. */
ssize_t http_body_read(struct http_exchange *x, void *to, size_t len, struct error *err);
/* All of it, up to the buffer's maximum, as http_body_all(). The buffer is released before the
 * request ends. */
int http_body_take(struct http_exchange *x, struct buf *body, struct error *err);
/* All of it, NUL-terminated, in the arena; PAYLOAD_TOO_LARGE (naming max) over max. */
int http_body_all(struct http_exchange *x, size_t max, struct slice *ret_body, struct error *err);
/* Moves up to `len` bytes of a body with Content-Length straight into a socket without copying
 * (what is buffered first, then splice). *ret_moved says how many; 0 at the end of the body. For a
 * chunked body it copies. */
int http_body_pump(struct http_exchange *x, int to_fd, uint64_t len, uint64_t *ret_moved,
                   struct error *err);

/* --- the answer --- */

/* Before the answer begins. Values must not hold CR, LF or NUL: they are dropped. */
void http_set_header(struct http_exchange *x, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Takes back all that were set. */
void http_clear_headers(struct http_exchange *x);
int http_started(const struct http_exchange *x);

/* A whole answer. HEAD gets the fields alone. */
int http_reply(struct http_exchange *x, int status, const char *content_type, const void *body,
               size_t len, struct error *err);
/* {"error":{"code":"SANDBOX_NOT_FOUND","message":"…"}} with the code's status. */
int http_reply_error(struct http_exchange *x, const struct error *why, struct error *err);

/* A coroutine that was cancelled: whether that is because the server ends, and the client is there
 * still to be told so. */
bool http_is_ending(const struct http_exchange *x);
/* Whether the client can be told why its answer fails. A cancellation becomes, when it is the
 * server's end, what is to be told (UNAVAILABLE); of any other one there is nobody to tell. */
bool http_can_tell(const struct http_exchange *x, struct error *why);

/* A streamed answer: start, write …, end. content_length -1: chunked (or until close for HTTP/1.0),
 * as events and logs are that may go on for ever. HTTP_LENGTH_LATER: the same for an answer that is
 * no stream of that kind: it ends when it is written, and only its length is not known before. */
enum { HTTP_LENGTH_LATER = -2 };
int http_reply_start(struct http_exchange *x, int status, const char *content_type,
                     int64_t content_length, struct error *err);
int http_reply_write(struct http_exchange *x, const void *data, size_t len, struct error *err);
/* Moves len bytes from a socket into the answer without copying them (as one chunk if chunked). */
int http_reply_pump(struct http_exchange *x, int from_fd, uint64_t len, struct error *err);
int http_reply_end(struct http_exchange *x, struct error *err);
