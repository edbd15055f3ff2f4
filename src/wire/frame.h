/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Frames between cellad, warden and agent.
 *
 * A frame is a 12-byte header, little endian, and a payload:
 *
 *     u32 length of the payload | u16 type | u16 zero | u32 id
 *
 * `id` pairs an answer with its request on a connection that carries several at once; 0 is
 * for events that nobody asked for. A payload is a row of fields, each `u16 tag | u32 length |
 * bytes`, except for the *_DATA types, whose payload is raw bytes.
 *
 * Which fields a type has is said once, in messages.c, as a table over a plain struct; encoding
 * and decoding are done by that table. Decoding trusts nothing: lengths, NULs, duplicates,
 * unknown tags and missing fields are checked, so that a decoded struct can be used as it is.
 * Decoded strings and bytes point into the payload.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum { FRAME_HEADER_SIZE = 12 };

struct frame_header {
    uint32_t length;
    uint16_t type;
    uint32_t id;
};

enum wire_kind {
    WIRE_U64,   /* uint64_t; absent: 0 */
    WIRE_STR,   /* const char *, NUL-terminated, no NUL inside; absent: NULL */
    WIRE_BYTES, /* struct slice; absent: empty */
    WIRE_STRV,  /* struct slice holding a list of strings (base/slice.h); absent: empty */
};

struct wire_field {
    uint16_t tag;
    enum wire_kind kind;
    bool required;
    size_t offset;
    uint32_t max; /* bytes, for all kinds but WIRE_U64 */
    const char *name;
};

struct wire_schema {
    uint16_t type;
    const char *name;
    size_t size;
    const struct wire_field *fields;
    size_t count;
};

void frame_header_encode(unsigned char out[FRAME_HEADER_SIZE], const struct frame_header *header);

/* Fails with INVALID_ARGUMENT on a payload over WIRE_PAYLOAD_MAX or a non-zero reserved word. */
int frame_header_decode(const unsigned char in[FRAME_HEADER_SIZE], struct frame_header *ret_header,
                        struct error *err);

/* Appends one whole frame; the buffer's `failed` says whether it fitted. msg may be NULL when the
 * schema has no fields. */
void wire_encode(struct buf *out, const struct wire_schema *schema, uint32_t id, const void *msg);

/* Appends a frame whose payload is raw bytes (the *_DATA types). */
void wire_encode_raw(struct buf *out, uint16_t type, uint32_t id, const void *data, size_t len);

/* Fills *ret_msg (schema->size bytes) from a payload. */
int wire_decode(const struct wire_schema *schema, struct slice payload, void *ret_msg,
                struct error *err);

/*
 * Takes the first whole frame out of `in`: 1 with the header and the payload (which points into
 * `in`, valid until the buffer changes; drop it with buf_consume(in, FRAME_HEADER_SIZE + length)),
 * 0 when more bytes are needed, -1 on a bad header.
 */
int wire_next(const struct buf *in, struct frame_header *ret_header, struct slice *ret_payload,
              struct error *err);

/* Blocking calls, for the warden's and the agent's children and for tests: whole frames only.
 * wire_read() fails with UNAVAILABLE at the end of the stream. */
int wire_write(int fd, const struct buf *frames, struct error *err);
int wire_read(int fd, struct buf *scratch, struct frame_header *ret_header,
              struct slice *ret_payload, struct error *err);
