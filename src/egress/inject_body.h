/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bodies of requests and answers in a session of egress/inject.h, piece by piece. */

#include "egress/inject_head.h"
#include "egress/inject_side.h"
#include "http/chunk.h"

/* A body that is read. FRAMING_CHUNKED: start with left 0 and a zeroed decoder. */
struct inject_body {
    enum inject_framing framing;
    uint64_t left; /* of the body, or of its chunk */
    struct chunk_decoder chunks;
};

/* The next piece, as much as has arrived; an empty one at the end. After a TIMEOUT it may be asked
 * for again. UPSTREAM_FAILED when the connection ends too early. */
int inject_body_next(struct inject_body *body, struct side *from, int64_t timeout_ms,
                     struct slice *ret_piece, struct error *err);

/* Passes a piece on, as a chunk if `chunked`; an empty one is nothing. */
int inject_body_pass(struct side *to, struct slice piece, bool chunked, int64_t timeout_ms,
                     struct error *err);
