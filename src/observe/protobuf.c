/* SPDX-License-Identifier: Apache-2.0 */

/* https://protobuf.dev/programming-guides/encoding/ */

#include "observe/protobuf.h"

#include <string.h>

enum { LENGTH_SIZE = 4 };

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
    add_key(out, field, PB_VARINT);
    add_varint(out, value);
}

void pb_fixed64(struct buf *out, unsigned field, uint64_t value)
{
    add_key(out, field, PB_FIXED64);
    add_little(out, value, sizeof(value));
}

void pb_fixed32(struct buf *out, unsigned field, uint32_t value)
{
    add_key(out, field, PB_FIXED32);
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
    add_key(out, field, PB_BYTES);
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
    add_key(out, field, PB_BYTES);
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

/* --- reading --- */

static bool take_varint(struct slice *rest, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && rest->len > 0; shift += 7) {
        unsigned char byte = (unsigned char)*rest->data;
        rest->data++;
        rest->len--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take_little(struct slice *rest, size_t size, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (rest->len < size)
        return false;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)(unsigned char)rest->data[i] << 8 * i;
    rest->data += size;
    rest->len -= size;
    *ret_value = value;
    return true;
}

bool pb_next(struct slice *rest, struct pb_field *ret_field)
{
    struct slice at = *rest;
    struct pb_field found = {0};
    uint64_t key, len = 0;
    if (at.len == 0 || !take_varint(&at, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX >> 3)
        return false;
    found.field = (unsigned)(key >> 3);
    found.kind = (enum pb_kind)(key & 7);
    bool whole = false;
    if (found.kind == PB_VARINT)
        whole = take_varint(&at, &found.number);
    else if (found.kind == PB_FIXED64 || found.kind == PB_FIXED32)
        whole = take_little(&at, found.kind == PB_FIXED64 ? 8 : 4, &found.number);
    else if (found.kind == PB_BYTES)
        whole = take_varint(&at, &len) && len <= at.len;
    if (!whole)
        return false;
    found.bytes = (struct slice){at.data, (size_t)len};
    at.data += len;
    at.len -= (size_t)len;
    *rest = at;
    *ret_field = found;
    return true;
}
