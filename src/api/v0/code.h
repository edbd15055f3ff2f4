/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the handlers of /code share. */

#include "api/call.h"
#include "code/code.h"
#include "http/router.h"

struct code_place code_place(const struct route_params *params, const struct api_call *call);

/* v0/code_reply.c: how the answer comes. */
enum code_shape {
    CODE_ONE_ANSWER, /* JSON, at the end */
    CODE_LINES,      /* application/x-ndjson: an object per event */
    CODE_EVENTS,     /* text/event-stream: the same objects */
};
/* By Accept, or ?stream=true: lines. */
int code_shape(struct http_exchange *x, enum code_shape *ret_shape, struct error *err);

/* A listener that makes the answer; its ctx. Start with code_reply_new(); when the run has come to
 * its end, code_reply_end(); when it has not, code_reply_fail(), which tells why (*err) in a stream
 * that has begun, and leaves everything else to the caller (-1). */
struct code_reply;
struct code_reply *code_reply_new(struct http_exchange *x, enum code_shape shape);
code_listener code_reply_listen;
int code_reply_end(struct code_reply *reply, struct error *err);
int code_reply_fail(struct code_reply *reply, struct error *err);
/* The answer in one piece as an object of the document, which has no root yet: for who wraps it. */
yyjson_mut_val *code_reply_object(struct code_reply *reply, yyjson_mut_doc **ret_doc);
void code_reply_free(struct code_reply *reply);
