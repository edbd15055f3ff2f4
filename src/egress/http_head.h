/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The head of an HTTP/1 request (RFC 9112), read so that nobody behind us can read it differently:
 * lines end in CR LF and nothing else, fields are not folded, there is exactly one Host and at most
 * one way to tell where the body ends. What is sent on is written anew from what was understood.
 *
 * Refused here, whoever it is for: CONNECT (a tunnel), HTTP/2's preface, an absolute target that
 * names another host than Host does, versions other than 1.0 and 1.1.
 *
 * Pure: a head points into the bytes it was read from.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum {
    HTTP_HEAD_MAX = 64 * 1024, /* bytes of it */
    HTTP_HEAD_FIELDS_MAX = 128,
};

struct http_head_field {
    struct slice name;
    struct slice value; /* without the blanks around it */
};

enum http_body_kind { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED };

struct http_head {
    size_t size; /* of the head, its empty line too */
    struct slice method;
    struct slice target; /* origin form ("/path?query"), or "*" of OPTIONS */
    unsigned minor;      /* HTTP/1.minor */
    struct slice host;   /* as in the field: host, or host:port; not canonical yet */
    enum http_body_kind body;
    uint64_t length; /* of HTTP_BODY_LENGTH */
    bool close;      /* the client wants no further request on this connection */
    bool websocket;  /* it asks for that upgrade */
    size_t count;
    struct http_head_field fields[HTTP_HEAD_FIELDS_MAX];
};

enum http_head_state { HTTP_HEAD_MORE, HTTP_HEAD_DONE, HTTP_HEAD_REFUSED };

/*
 * Looks for a head at the start of `bytes`. `looked` is how many of them an earlier call has seen,
 * so that a head that comes byte by byte is not searched again and again; 0 is always right.
 * HTTP_HEAD_REFUSED sets *err: INVALID_HTTP, HEADERS_TOO_LARGE, METHOD_NOT_ALLOWED, HTTP_VERSION.
 */
enum http_head_state http_head_read(struct slice bytes, size_t looked, struct http_head *ret_head,
                                    struct error *err);

/* The first field of that name (in lower case); NULL when there is none. */
const struct http_head_field *http_head_field(const struct http_head *head, const char *name);

struct http_head_changes {
    const char *host; /* what Host says; canonical */
    bool upgrade;     /* pass the wish for a WebSocket on; else it is left out, as all others */
    const char
        *set_name; /* a field that is set to this value, whatever the client sent; NULL: none */
    const char *set_value;
};

/*
 * Appends the head as it goes to the server. Fields that are between two neighbours only
 * (Connection and what it names, Keep-Alive, TE, Upgrade, Proxy-…) are left out.
 */
void http_head_write(struct buf *out, const struct http_head *head,
                     const struct http_head_changes *changes);

/*
 * Where a body ends. Feed it the bytes behind the head: it says how many of them belong to the
 * body, and when it is over. Chunks are passed on as they came, without extensions and without
 * trailers: what has them is refused.
 */
struct http_body {
    enum http_body_kind kind;
    uint64_t left;  /* of the length, or of the chunk */
    unsigned state; /* inside the framing of chunks */
    unsigned digits;
    bool done;
};

void http_body_init(struct http_body *body, const struct http_head *head);
/* Returns how many of the bytes belong to the body (0 when it is done), -1 with INVALID_HTTP. */
ptrdiff_t http_body_feed(struct http_body *body, const char *data, size_t len, struct error *err);

/* The status of an answer whose head is whole: "HTTP/1.1 101 …". 0 when that is no answer. */
unsigned http_answer_status(struct slice bytes);
