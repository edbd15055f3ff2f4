/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The output of a process as the answer to a request: the same for every facade but for its shape.
 * The answer goes on until the process has ended, without a limit of time; when nothing is to be
 * told for a while, a sign of life is. The process goes by X-Cella-Pid and X-Cella-Process in the
 * answer's header.
 */

#include <stdbool.h>
#include <stdint.h>

#include <yyjson.h>

#include "base/arena.h"
#include "http/server.h"
#include "sandbox/process_output.h"

enum stream_shape {
    /* text/plain: whole lines, each after "stdout:" or "stderr:". "[keepalive]" now and then. */
    STREAM_LINES,
    /* application/x-ndjson: {"type","data"} per line; stdout, stderr, keepalive, error, result */
    STREAM_NDJSON,
    /* text/event-stream: the same objects as events, with the offset as their id */
    STREAM_EVENTS,
    /* application/vnd.cella.stream: exact bytes, for programs (enum stream_frame) */
    STREAM_FRAMES,
};

/* A frame: one byte of these, three zeros, the length of what follows as 32 bits, big-endian. */
enum stream_frame {
    FRAME_STDOUT = 1,
    FRAME_STDERR = 2,
    FRAME_ERROR = 3,     /* {"code","message"}; the last frame */
    FRAME_RESULT = 4,    /* the process; the last frame */
    FRAME_KEEPALIVE = 5, /* empty */
    FRAME_DROPPED = 6,   /* how many bytes are missing here, in digits */
};

struct stream_style {
    enum stream_shape shape;
    /* Members that say what {"type","data"} cannot: the offset, what was dropped, and exact bytes
     * where the text could not be exact ("dataBase64"). */
    bool extras;
    /* At the end the process itself, made by this (NULL: no). As JSON in the data's text, or (in
     * frames) as it is. */
    void (*result)(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                   const struct agent_process *process, void *ctx);
    void *ctx; /* result's */
};

/* Answers with the output from here to the process's end. `process`: who it is. */
int process_stream_reply(struct http_exchange *x, struct process_output *output,
                         const struct agent_process *process, const struct stream_style *style,
                         struct error *err);
