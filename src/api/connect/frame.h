/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Envelopes of the Connect protocol's streams: one byte of flags, the length as 32 bits big-endian,
 * and a message. Pure functions, for the fuzzer too.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum connect_flags {
    CONNECT_COMPRESSED = 1 << 0,
    CONNECT_END = 1 << 1, /* the last one: an error, or nothing */
};

enum { CONNECT_HEADER_SIZE = 5 };

/* The one message that a request of a server stream is made of: body is all of it. INVALID_ARGUMENT
 * for a body that is cut off, holds more, or is compressed. */
int connect_frame_take(struct slice body, struct slice *ret_message, struct error *err);

/* The head of one of several messages: how long it is. INVALID_ARGUMENT for one that is compressed,
 * PAYLOAD_TOO_LARGE over max. */
int connect_frame_head(const char head[CONNECT_HEADER_SIZE], size_t max, size_t *ret_len,
                       struct error *err);

void connect_frame_add(struct buf *out, unsigned flags, struct slice message);
