/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The heads of messages: from bytes to fields. Pure functions: no socket, no waiting, so that
 * tables of bad requests and a fuzzer can be put in front of them.
 *
 * First head_scan() finds the end of a head as its bytes arrive, rejecting at once what no later
 * byte can make right. Then request_parse() or answer_parse() takes the whole head apart.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "http/server.h"

struct head_scan { /* start from a zeroed struct; a new one for each head */
    size_t at;     /* bytes looked at; with HEAD_WHOLE the length of the head */
    size_t start;  /* where the first line begins (after an empty line that is let through) */
    size_t line;   /* where the current line begins */
    unsigned lines;
    bool after_cr;
};

enum head_state { HEAD_PARTIAL, HEAD_WHOLE, HEAD_BAD };

/* data: all of the head that there is, again from its beginning. Limits: headers_max and
 * target_max (both set). HEAD_BAD sets the error. */
enum head_state head_scan(struct head_scan *scan, const char *data, size_t len,
                          const struct http_limits *limits, struct error *err);

struct request_head {
    struct http_request request; /* all but `peer` */
    bool http10;
    bool close;            /* the client wants no further answer on this connection */
    bool chunked;          /* request.content_length is -1 then */
    bool expects_continue; /* wants to hear 100 before it sends the body */
    bool is_head;          /* method HEAD */
};

/* data: a whole head, from scan.start on. Strings are in the arena. INVALID_HTTP, HTTP_VERSION,
 * NOT_IMPLEMENTED, EXPECTATION_FAILED. */
int request_parse(struct arena *arena, const char *data, size_t len, struct request_head *ret_head,
                  struct error *err);

struct answer_head {
    int status;
    const struct http_header *headers;
    size_t header_count;
    int64_t content_length; /* -1: none given */
    bool chunked;
    bool close;
};

int answer_parse(struct arena *arena, const char *data, size_t len, struct answer_head *ret_head,
                 struct error *err);

/* Whether a comma-separated list has this item, case aside. */
bool http_list_has(const char *list, const char *item);
