/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writing protobuf messages, as far as OTLP needs it. A message inside another one is begun and
 * ended; its length, which is not known before, has a place of fixed size (a varint may have more
 * bytes than it needs), so that nothing is built twice. Failures are the buffer's (base/buf.h).
 */

#include <stdint.h>

#include "base/buf.h"

void pb_uint(struct buf *out, unsigned field, uint64_t value);
void pb_fixed64(struct buf *out, unsigned field, uint64_t value);
void pb_fixed32(struct buf *out, unsigned field, uint32_t value);
void pb_double(struct buf *out, unsigned field, double value);
void pb_bytes(struct buf *out, unsigned field, const void *data, size_t len);
void pb_text(struct buf *out, unsigned field, const char *text); /* "" is left out */

/* mark: where pb_end() finds the beginning. */
size_t pb_begin(struct buf *out, unsigned field);
void pb_end(struct buf *out, size_t mark);
