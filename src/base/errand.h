/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * On whose behalf something is done: the request's id, and its place in a distributed trace. A
 * coroutine carries one (loop/co.h), which those that it starts inherit, and each line of the log
 * tells of it. All zeros: the server's own business.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    REQUEST_ID_MAX = 64, /* characters */
    TRACE_ID_SIZE = 16,
    SPAN_ID_SIZE = 8,
    TRACESTATE_MAX = 512, /* characters: what W3C asks everybody to pass on */
};

struct tracer;

struct errand {
    char request_id[REQUEST_ID_MAX + 1]; /* "": none */
    bool traced;                         /* the next three mean something */
    uint8_t trace_flags;                 /* bit 0: sampled */
    uint8_t trace_id[TRACE_ID_SIZE];
    uint8_t span_id[SPAN_ID_SIZE]; /* of what is under way: the parent of what begins next */
    struct tracer *tracer;         /* records spans; NULL: nobody does */
    uint16_t tracestate_len;
    char tracestate[TRACESTATE_MAX + 1]; /* last: only so much of it is copied */
};
