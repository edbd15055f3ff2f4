/* SPDX-License-Identifier: Apache-2.0 */

/*
 * UTF-8 as Unicode defines it (no surrogates, nothing overlong, nothing past U+10FFFF). Processes
 * write whatever bytes they like, JSON holds characters: what is not one becomes U+FFFD, one for
 * each maximal piece of a character, as browsers and Python do it.
 */

#include "json/utf8.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "json/json.h"

/* Which second bytes may follow a first byte, and how many bytes there are in all. */
static const struct lead {
    unsigned char first, last; /* of the first byte */
    unsigned char low, high;   /* of the second */
    unsigned char len;
} leads[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

/* Steps over a character, or over the piece of one that begins here and is cut short (false). */
static bool step(const unsigned char **p, const unsigned char *end)
{
    unsigned char first = *(*p)++;
    if (first < 0x80)
        return true;
    const struct lead *lead = leads;
    for (; lead < leads + ARRAY_LEN(leads); lead++)
        if (first >= lead->first && first <= lead->last)
            break;
    if (lead == leads + ARRAY_LEN(leads))
        return false;
    unsigned char low = lead->low, high = lead->high;
    for (int i = 1; i < lead->len; i++) {
        if (*p == end || **p < low || **p > high)
            return false;
        (*p)++;
        low = 0x80, high = 0xbf;
    }
    return true;
}

/* Skips what is plain ASCII, eight bytes at a time. */
static const unsigned char *skip_ascii(const unsigned char *p, const unsigned char *end)
{
    for (uint64_t word; end - p >= (ptrdiff_t)sizeof(word); p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        if ((word & 0x8080808080808080u) != 0)
            break;
    }
    return p;
}

/* How many bytes from the beginning are whole characters. */
static size_t valid_prefix(struct slice text)
{
    const unsigned char *start = (const unsigned char *)text.data, *p = start,
                        *end = start + text.len;
    while ((p = skip_ascii(p, end)) < end) {
        const unsigned char *was = p;
        if (!step(&p, end))
            return (size_t)(was - start);
    }
    return text.len;
}

bool json_is_utf8(struct slice text)
{
    return text.len == 0 || valid_prefix(text) == text.len;
}

size_t json_utf8_tail(struct slice text)
{
    const unsigned char *end = (const unsigned char *)text.data + text.len;
    for (size_t back = 1; back <= 3 && back <= text.len; back++) {
        const unsigned char *p = end - back, first = *p;
        if (first < 0x80)
            return 0;
        if (first < 0xc0)
            continue; /* a byte from the middle of a character */
        /* Cut short, and by the end alone: then it stops there. */
        return !step(&p, end) && p == end && first >= 0xc2 && first <= 0xf4 ? back : 0;
    }
    return 0;
}

void utf8_clean(struct slice text, struct buf *out)
{
    while (text.len > 0) {
        size_t good = valid_prefix(text);
        buf_add(out, text.data, good);
        if (good < text.len) {
            const unsigned char *p = (const unsigned char *)text.data + good;
            step(&p, (const unsigned char *)text.data + text.len);
            buf_adds(out, "\xef\xbf\xbd");
            good = (size_t)((const char *)p - text.data);
        }
        text.data += good;
        text.len -= good;
    }
}

/* *ret_lossy: whether there was anything that is not UTF-8. */
static yyjson_mut_val *clean_value(yyjson_mut_doc *doc, struct slice text, bool *ret_lossy)
{
    *ret_lossy = !json_is_utf8(text);
    if (!*ret_lossy)
        return yyjson_mut_strncpy(doc, text.len == 0 ? "" : text.data, text.len);
    _cleanup_buf_ struct buf clean = BUF_INIT(UTF8_CLEAN_MAX(text.len));
    utf8_clean(text, &clean);
    if (clean.failed) /* out of memory */
        abort();
    return yyjson_mut_strncpy(doc, clean.data, clean.len);
}

yyjson_mut_val *json_lossy(yyjson_mut_doc *doc, struct slice text)
{
    bool lossy;
    return clean_value(doc, text, &lossy);
}

bool json_add_lossy(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, struct slice text)
{
    bool lossy;
    yyjson_mut_obj_add_val(doc, object, key, clean_value(doc, text, &lossy));
    return lossy;
}
