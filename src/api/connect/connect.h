/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The Connect protocol (connectrpc.com), as far as E2B's and Scalebox's clients speak it: JSON, one
 * request message, and one answer or a stream of them.
 *
 * A unary call is an ordinary request with a JSON body. Of a stream the request is one envelope
 * (connect/frame.h), and the answer is HTTP 200 with an envelope per message and one at the end,
 * which holds an error or nothing.
 */

#include <stdint.h>

#include "http/server.h"
#include "json/json.h"

/* "not_found" …: what the clients branch on; and the HTTP status that goes with it. */
const char *connect_code(enum error_code code);
int connect_status(enum error_code code);

#define CONNECT_STREAM_TYPE "application/connect+json"

/* Whether the request is one of a stream (application/connect+json, or connect+proto). */
bool connect_is_stream(const struct http_exchange *x);

/* The request's message, of a unary call or a stream: an object, never NULL. UNSUPPORTED_MEDIA_TYPE
 * for protobuf, INVALID_ARGUMENT for a broken envelope, INVALID_JSON, PAYLOAD_TOO_LARGE. */
int connect_request(struct http_exchange *x, yyjson_val **ret_message, struct error *err);

/* Connect-Timeout-Ms; *ret_ms stays without one, and where it is 0. INVALID_ARGUMENT. */
int connect_timeout(const struct http_exchange *x, int64_t *ret_ms, struct error *err);
/* What is told when that time is over; returns -1. */
int connect_too_late(struct error *err);

/* Answers a unary call. doc NULL: {}. */
int connect_reply(struct http_exchange *x, const yyjson_mut_doc *doc, struct error *err);

/* A dialect's reply_error: in the shape that the request's kind asks for. */
int connect_reply_error(struct http_exchange *x, const struct error *why, struct error *err);

/* --- streams --- */

struct connect_stream {
    struct http_exchange *x;
    int64_t deadline_ms; /* of the loop's clock, by Connect-Timeout-Ms; -1: none */
    int64_t ping_ms;     /* between two signs of life, by Keepalive-Ping-Interval (s) */
};

/* Reads the fields; sends nothing yet. INVALID_ARGUMENT. */
int connect_stream_init(struct connect_stream *stream, struct http_exchange *x, struct error *err);
/* The answer begins. Errors from here on are told by connect_stream_end(). */
int connect_stream_start(struct connect_stream *stream, struct error *err);
/* One message. doc's memory is the caller's: a long stream uses an arena for each. */
int connect_stream_send(struct connect_stream *stream, const yyjson_mut_doc *doc,
                        struct error *err);
/* The same for a message that is text already. */
int connect_stream_send_text(struct connect_stream *stream, struct slice message,
                             struct error *err);
/* why NULL: all went well. */
int connect_stream_end(struct connect_stream *stream, const struct error *why, struct error *err);
/* … because something went wrong. -1 when nobody is there to be told. */
int connect_stream_fail(struct connect_stream *stream, const struct error *why, struct error *err);

/* How long to wait for the next event: until the next sign of life or the deadline, whichever comes
 * first; 0 when the deadline has passed. */
int64_t connect_stream_patience(const struct connect_stream *stream);
bool connect_stream_is_over(const struct connect_stream *stream);
