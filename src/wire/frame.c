/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Encoding and decoding by schema. The other end of every connection may be hostile (a sandbox's
 * agent is, by assumption), so the decoder is the place where bytes become trusted values.
 */

#include "wire/frame.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"

enum { FIELD_HEADER_SIZE = 6 };

static void put_u16(unsigned char *to, uint16_t v)
{
    to[0] = (unsigned char)v;
    to[1] = (unsigned char)(v >> 8);
}

static void put_u32(unsigned char *to, uint32_t v)
{
    put_u16(to, (uint16_t)v);
    put_u16(to + 2, (uint16_t)(v >> 16));
}

static void put_u64(unsigned char *to, uint64_t v)
{
    put_u32(to, (uint32_t)v);
    put_u32(to + 4, (uint32_t)(v >> 32));
}

static uint16_t get_u16(const unsigned char *from)
{
    return (uint16_t)(from[0] | from[1] << 8);
}

static uint32_t get_u32(const unsigned char *from)
{
    return get_u16(from) | (uint32_t)get_u16(from + 2) << 16;
}

static uint64_t get_u64(const unsigned char *from)
{
    return get_u32(from) | (uint64_t)get_u32(from + 4) << 32;
}

void frame_header_encode(unsigned char out[FRAME_HEADER_SIZE], const struct frame_header *header)
{
    put_u32(out, header->length);
    put_u16(out + 4, header->type);
    put_u16(out + 6, 0);
    put_u32(out + 8, header->id);
}

int frame_header_decode(const unsigned char in[FRAME_HEADER_SIZE], struct frame_header *ret_header,
                        struct error *err)
{
    struct frame_header header = {
        .length = get_u32(in), .type = get_u16(in + 4), .id = get_u32(in + 8)};
    if (header.length > WIRE_PAYLOAD_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "frame of %u bytes is over the limit of %d",
                         header.length, WIRE_PAYLOAD_MAX);
    if (get_u16(in + 6) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "frame header's reserved word is not zero");
    *ret_header = header;
    return 0;
}

static void add_field(struct buf *out, uint16_t tag, const void *data, size_t len)
{
    unsigned char header[FIELD_HEADER_SIZE];
    put_u16(header, tag);
    put_u32(header + 2, (uint32_t)len);
    buf_add(out, header, sizeof(header));
    buf_add(out, data, len);
}

static void encode_field(struct buf *out, const struct wire_field *field, const void *msg)
{
    const char *at = (const char *)msg + field->offset;
    switch (field->kind) {
    case WIRE_U64: {
        uint64_t value;
        unsigned char bytes[8];
        memcpy(&value, at, sizeof(value));
        if (value == 0 && !field->required)
            return;
        put_u64(bytes, value);
        add_field(out, field->tag, bytes, sizeof(bytes));
        return;
    }
    case WIRE_STR: {
        const char *str;
        memcpy(&str, at, sizeof(str));
        if (str != NULL)
            add_field(out, field->tag, str, strlen(str) + 1);
        return;
    }
    case WIRE_BYTES:
    case WIRE_STRV: {
        struct slice bytes;
        memcpy(&bytes, at, sizeof(bytes));
        if (bytes.len > 0)
            add_field(out, field->tag, bytes.data, bytes.len);
        return;
    }
    }
}

void wire_encode(struct buf *out, const struct wire_schema *schema, uint32_t id, const void *msg)
{
    size_t start = out->len;
    unsigned char *header = (unsigned char *)buf_reserve(out, FRAME_HEADER_SIZE);
    if (header == NULL)
        return;
    buf_commit(out, FRAME_HEADER_SIZE);
    for (size_t i = 0; i < schema->count; i++)
        encode_field(out, &schema->fields[i], msg);

    size_t length = out->len - start - FRAME_HEADER_SIZE;
    if (out->failed || length > WIRE_PAYLOAD_MAX) {
        out->len = start; /* no half frames */
        out->failed = true;
        return;
    }
    frame_header_encode((unsigned char *)out->data + start,
                        &(struct frame_header){(uint32_t)length, schema->type, id});
}

void wire_encode_raw(struct buf *out, uint16_t type, uint32_t id, const void *data, size_t len)
{
    unsigned char header[FRAME_HEADER_SIZE];
    if (len > WIRE_PAYLOAD_MAX) {
        out->failed = true;
        return;
    }
    frame_header_encode(header, &(struct frame_header){(uint32_t)len, type, id});
    if (buf_reserve(out, sizeof(header) + len) == NULL)
        return;
    buf_add(out, header, sizeof(header));
    buf_add(out, data, len);
}

static int bad_field(const struct wire_schema *schema, const struct wire_field *field,
                     const char *why, struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "%s.%s %s", schema->name, field->name, why);
}

static int decode_field(const struct wire_schema *schema, const struct wire_field *field,
                        struct slice value, void *msg, struct error *err)
{
    char *at = (char *)msg + field->offset;
    if (field->kind == WIRE_U64) {
        if (value.len != 8)
            return bad_field(schema, field, "is not 8 bytes long", err);
        uint64_t number = get_u64((const unsigned char *)value.data);
        memcpy(at, &number, sizeof(number));
        return 0;
    }
    if (value.len > field->max)
        return bad_field(schema, field, "is too long", err);
    if (field->kind == WIRE_STR) {
        if (value.len == 0 || memchr(value.data, '\0', value.len) != value.data + value.len - 1)
            return bad_field(schema, field, "is not a string", err);
        memcpy(at, &value.data, sizeof(value.data));
        return 0;
    }
    if (field->kind == WIRE_STRV && !strv_valid(value))
        return bad_field(schema, field, "is not a list of strings", err);
    memcpy(at, &value, sizeof(value));
    return 0;
}

static const struct wire_field *find_field(const struct wire_schema *schema, uint16_t tag,
                                           size_t *ret_index)
{
    for (size_t i = 0; i < schema->count; i++)
        if (schema->fields[i].tag == tag) {
            *ret_index = i;
            return &schema->fields[i];
        }
    return NULL;
}

int wire_decode(const struct wire_schema *schema, struct slice payload, void *ret_msg,
                struct error *err)
{
    uint64_t seen = 0; /* a bit per field; a schema has at most 64 */
    if (schema->size > 0)
        memset(ret_msg, 0, schema->size);
    while (payload.len > 0) {
        if (payload.len < FIELD_HEADER_SIZE)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s: cut off", schema->name);
        const unsigned char *header = (const unsigned char *)payload.data;
        uint16_t tag = get_u16(header);
        struct slice value = {payload.data + FIELD_HEADER_SIZE, get_u32(header + 2)};
        if (value.len > payload.len - FIELD_HEADER_SIZE)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s: cut off", schema->name);

        size_t index;
        const struct wire_field *field = find_field(schema, tag, &index);
        if (field == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s: unknown field %u", schema->name,
                             tag);
        if (seen & UINT64_C(1) << index)
            return bad_field(schema, field, "is there twice", err);
        seen |= UINT64_C(1) << index;
        if (decode_field(schema, field, value, ret_msg, err) < 0)
            return -1;
        payload.data = value.data + value.len;
        payload.len -= FIELD_HEADER_SIZE + value.len;
    }
    for (size_t i = 0; i < schema->count; i++)
        if (schema->fields[i].required && !(seen & UINT64_C(1) << i))
            return bad_field(schema, &schema->fields[i], "is missing", err);
    return 0;
}

int wire_next(const struct buf *in, struct frame_header *ret_header, struct slice *ret_payload,
              struct error *err)
{
    if (in->len < FRAME_HEADER_SIZE)
        return 0;
    struct frame_header header;
    if (frame_header_decode((const unsigned char *)in->data, &header, err) < 0)
        return -1;
    if (in->len - FRAME_HEADER_SIZE < header.length)
        return 0;
    *ret_header = header;
    *ret_payload = (struct slice){in->data + FRAME_HEADER_SIZE, header.length};
    return 1;
}

int wire_write(int fd, const struct buf *frames, struct error *err)
{
    if (buf_check(frames, "message", err) < 0)
        return -1;
    size_t done = 0;
    while (done < frames->len) {
        ssize_t n = write(fd, frames->data + done, frames->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys_as(err, ERROR_UNAVAILABLE, "writing a message");
        done += (size_t)n;
    }
    return 0;
}

static int read_whole(int fd, void *to, size_t len, struct error *err)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = read(fd, (char *)to + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_sys_as(err, ERROR_UNAVAILABLE, "reading a message");
        if (n == 0)
            return error_set(err, ERROR_UNAVAILABLE, "the other end closed the connection");
        done += (size_t)n;
    }
    return 0;
}

int wire_read(int fd, struct buf *scratch, struct frame_header *ret_header,
              struct slice *ret_payload, struct error *err)
{
    unsigned char bytes[FRAME_HEADER_SIZE];
    struct frame_header header;
    if (read_whole(fd, bytes, sizeof(bytes), err) < 0 ||
        frame_header_decode(bytes, &header, err) < 0)
        return -1;
    buf_clear(scratch);
    char *to = buf_reserve(scratch, header.length);
    if (to == NULL)
        return buf_check(scratch, "message", err);
    if (read_whole(fd, to, header.length, err) < 0)
        return -1;
    buf_commit(scratch, header.length);
    *ret_header = header;
    *ret_payload = (struct slice){scratch->data, header.length};
    return 0;
}
