/* SPDX-License-Identifier: Apache-2.0 */

/* https://protobuf.dev/programming-guides/encoding/ */

#include "observe/protobuf.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, LENGTH_SIZE = 4 };

static void add_varint(struct buf *out, uint64_t value)
{
    while (value >= 0x80) {
        buf_addc(out, (char)(value | 0x80));
        value >>= 7;
    }
    buf_addc(out, (char)value);
}

static void add_key(struct buf *out, unsigned field, unsigned kind)
{
    add_varint(out, (uint64_t)field << 3 | kind);
}

static void add_little(struct buf *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        buf_addc(out, (char)(value >> 8 * i));
}

void pb_uint(struct buf *out, unsigned field, uint64_t value)
{
    add_key(out, field, VARINT);
    add_varint(out, value);
}

void pb_fixed64(struct buf *out, unsigned field, uint64_t value)
{
    add_key(out, field, FIXED64);
    add_little(out, value, sizeof(value));
}

void pb_fixed32(struct buf *out, unsigned field, uint32_t value)
{
    add_key(out, field, FIXED32);
    add_little(out, value, sizeof(value));
}

void pb_double(struct buf *out, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    pb_fixed64(out, field, bits);
}

void pb_bytes(struct buf *out, unsigned field, const void *data, size_t len)
{
    add_key(out, field, LENGTH);
    add_varint(out, len);
    buf_add(out, data, len);
}

void pb_text(struct buf *out, unsigned field, const char *text)
{
    if (text != NULL && text[0] != '\0')
        pb_bytes(out, field, text, strlen(text));
}

size_t pb_begin(struct buf *out, unsigned field)
{
    add_key(out, field, LENGTH);
    buf_add(out, "\0\0\0\0", LENGTH_SIZE);
    return out->len;
}

void pb_end(struct buf *out, size_t mark)
{
    if (out->failed)
        return;
    size_t len = out->len - mark;
    for (size_t i = 0; i < LENGTH_SIZE; i++)
        out->data[mark - LENGTH_SIZE + i] =
            (char)((len >> 7 * i & 0x7f) | (i + 1 < LENGTH_SIZE ? 0x80 : 0));
}
