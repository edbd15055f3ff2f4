/* SPDX-License-Identifier: Apache-2.0 */

/* Takes the framing off bodies, and puts it on again. */

#include "egress/inject_body.h"

#include <stdio.h>

int inject_body_pass(struct side *to, struct slice piece, bool chunked, int64_t timeout_ms,
                     struct error *err)
{
    char size[24];
    if (piece.len == 0)
        return 0;
    if (!chunked)
        return side_write(to, piece.data, piece.len, timeout_ms, err);
    int n = snprintf(size, sizeof(size), "%zx\r\n", piece.len);
    if (side_write(to, size, (size_t)n, timeout_ms, err) < 0 ||
        side_write(to, piece.data, piece.len, timeout_ms, err) < 0)
        return -1;
    return side_write(to, "\r\n", 2, timeout_ms, err);
}

int inject_body_next(struct inject_body *body, struct side *from, int64_t timeout_ms,
                     struct slice *ret_piece, struct error *err)
{
    for (;;) {
        struct slice have = side_bytes(from);
        size_t used = 0;
        *ret_piece = (struct slice){"", 0};
        if (body->framing == FRAMING_NONE || (body->framing == FRAMING_LENGTH && body->left == 0))
            return 0;
        if (body->framing == FRAMING_CHUNKED && have.len > 0) {
            enum chunk_step step = chunk_decode(&body->chunks, have.data, have.len, &used, err);
            side_took(from, used);
            have = side_bytes(from);
            if (step == CHUNK_BAD)
                return -1;
            if (step == CHUNK_END) {
                body->framing = FRAMING_NONE;
                return 0;
            }
            body->left = step == CHUNK_DATA ? body->chunks.left : 0;
        }
        if (have.len > 0 && (body->framing == FRAMING_TO_END || body->left > 0)) {
            if (body->framing != FRAMING_TO_END && have.len > body->left)
                have.len = body->left;
            if (body->framing == FRAMING_CHUNKED)
                chunk_took(&body->chunks, have.len);
            body->left -= body->framing == FRAMING_TO_END ? 0 : have.len;
            side_took(from, have.len);
            *ret_piece = have;
            return 0;
        }
        int more = side_fill(from, timeout_ms, err);
        if (more < 0)
            return -1;
        if (more == 0 && body->framing == FRAMING_TO_END)
            return 0;
        if (more == 0)
            return error_set(err, ERROR_UPSTREAM_FAILED, "the connection ended in a body");
    }
}
