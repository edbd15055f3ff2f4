/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writing protobuf messages, and reading them again, as far as OTLP needs it. A message inside
 * another one is begun and ended; its length, which is not known before, has a place of fixed size
 * (a varint may have more bytes than it needs), so that nothing is built twice. Failures are the
 * buffer's (base/buf.h).
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

void pb_uint(struct buf *out, unsigned field, uint64_t value);
void pb_fixed64(struct buf *out, unsigned field, uint64_t value);
void pb_fixed32(struct buf *out, unsigned field, uint32_t value);
void pb_double(struct buf *out, unsigned field, double value);
void pb_bytes(struct buf *out, unsigned field, const void *data, size_t len);
void pb_text(struct buf *out, unsigned field, const char *text); /* "" is left out */

/* mark: where pb_end() finds the beginning. */
size_t pb_begin(struct buf *out, unsigned field);
void pb_end(struct buf *out, size_t mark);

enum pb_kind { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_field {
    unsigned field;
    enum pb_kind kind;
    uint64_t number;    /* of all kinds but … */
    struct slice bytes; /* … PB_BYTES */
};

/* Takes the first field off the message. false: it is empty, or (*rest is not) no message. */
bool pb_next(struct slice *rest, struct pb_field *ret_field);
