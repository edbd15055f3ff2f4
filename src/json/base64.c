/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Base64 for file content inside JSON. Strict, because what two decoders read differently is not
 * what was sent: padding is needed, and the bits that padding leaves over are zero. Line breaks
 * are let through, since many encoders wrap their lines.
 */

#include "json/json.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct slice json_base64_encode(struct arena *arena, struct slice bytes)
{
    size_t len = (bytes.len + 2) / 3 * 4;
    char *text = arena_alloc(arena, len + 1), *to = text;
    const unsigned char *from = (const unsigned char *)bytes.data;
    size_t left = bytes.len;
    for (; left >= 3; left -= 3, from += 3) {
        unsigned three = (unsigned)from[0] << 16 | (unsigned)from[1] << 8 | from[2];
        *to++ = alphabet[three >> 18];
        *to++ = alphabet[three >> 12 & 63];
        *to++ = alphabet[three >> 6 & 63];
        *to++ = alphabet[three & 63];
    }
    if (left > 0) {
        unsigned three = (unsigned)from[0] << 16 | (left == 2 ? (unsigned)from[1] << 8 : 0);
        *to++ = alphabet[three >> 18];
        *to++ = alphabet[three >> 12 & 63];
        *to++ = left == 2 ? alphabet[three >> 6 & 63] : '=';
        *to++ = '=';
    }
    return (struct slice){text, len};
}

static int refuse(size_t at, const char *why, struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "not valid base64: %s at byte %zu", why, at);
}

enum { BAD = 64 };

static void make_values(unsigned char values[256])
{
    memset(values, BAD, 256);
    for (unsigned char i = 0; i < 64; i++)
        values[(unsigned char)alphabet[i]] = i;
}

/* Whether what follows the data is the right padding and nothing else but line breaks. */
static int check_padding(struct slice text, size_t at, unsigned count, struct error *err)
{
    unsigned padding = 0;
    for (; at < text.len; at++) {
        char c = text.data[at];
        if (c == '\r' || c == '\n')
            continue;
        if (c != '=')
            return refuse(at, padding > 0 ? "more data behind the padding" : "wrong character",
                          err);
        padding++;
    }
    if (count == 1)
        return refuse(text.len, "it is cut short", err);
    if (padding != (count == 0 ? 0 : 4 - count))
        return refuse(text.len, "wrong padding", err);
    return 0;
}

int json_base64_decode(struct arena *arena, struct slice text, struct slice *ret_bytes,
                       struct error *err)
{
    unsigned char values[256];
    make_values(values);
    char *bytes = arena_alloc(arena, text.len / 4 * 3 + 4), *to = bytes;
    unsigned bits = 0, count = 0; /* of a group of four characters */
    size_t at = 0;
    for (; at < text.len; at++) {
        unsigned value = values[(unsigned char)text.data[at]];
        if (value == BAD) {
            if (text.data[at] == '\r' || text.data[at] == '\n')
                continue;
            break;
        }
        bits = bits << 6 | value;
        if (++count == 4) {
            *to++ = (char)(bits >> 16);
            *to++ = (char)(bits >> 8);
            *to++ = (char)bits;
            bits = count = 0;
        }
    }
    if (check_padding(text, at, count, err) < 0)
        return -1;
    if ((count == 2 && (bits & 15) != 0) || (count == 3 && (bits & 3) != 0))
        return refuse(at, "bits left over", err);
    if (count == 3)
        *to++ = (char)(bits >> 10);
    if (count >= 2)
        *to++ = (char)(bits >> (count == 2 ? 4 : 2));
    *to = '\0';
    *ret_bytes = (struct slice){bytes, (size_t)(to - bytes)};
    return 0;
}
