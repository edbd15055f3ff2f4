/* SPDX-License-Identifier: Apache-2.0 */

/* Frames from bytes and back. Everything a peer can do wrong in them is found here. */

#include "http/ws_frame.h"

#include <string.h>

#include "base/cleanup.h"

/* --- text --- */

/* Which second bytes may follow a first byte, and how many bytes come after it. */
static const struct lead {
    uint8_t first, last;
    uint8_t low, high;
    uint8_t need;
} leads[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 1}, {0xe0, 0xe0, 0xa0, 0xbf, 2}, {0xe1, 0xec, 0x80, 0xbf, 2},
    {0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2}, {0xf0, 0xf0, 0x90, 0xbf, 3},
    {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3},
};

static bool text_lead(struct ws_text *text, unsigned char byte)
{
    for (size_t i = 0; i < ARRAY_LEN(leads); i++)
        if (byte >= leads[i].first && byte <= leads[i].last) {
            *text = (struct ws_text){leads[i].need, leads[i].low, leads[i].high};
            return true;
        }
    return false;
}

bool ws_text_feed(struct ws_text *text, const unsigned char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text->need == 0) {
            if (data[i] >= 0x80 && !text_lead(text, data[i]))
                return false;
            continue;
        }
        if (data[i] < text->low || data[i] > text->high)
            return false;
        *text = (struct ws_text){(uint8_t)(text->need - 1), 0x80, 0xbf};
    }
    return true;
}

/* --- receiving --- */

static bool is_control(enum ws_opcode opcode)
{
    return opcode >= WS_CLOSE;
}

static enum ws_step bad(struct ws_decoder *d, enum ws_close_code code, const char *problem)
{
    d->close_code = code;
    d->problem = problem;
    return WS_BAD;
}

static bool is_opcode(unsigned opcode)
{
    return opcode <= WS_BINARY || (opcode >= WS_CLOSE && opcode <= WS_PONG);
}

/* What the first two bytes tell. */
static enum ws_step check_start(struct ws_decoder *d)
{
    unsigned first = d->head[0], second = d->head[1], length = second & 0x7f;
    d->fin = first & 0x80;
    d->opcode = first & 0x0f;
    if ((first & 0x70) != 0)
        return bad(d, WS_CLOSE_PROTOCOL, "a reserved bit is set");
    if (!is_opcode(first & 0x0f))
        return bad(d, WS_CLOSE_PROTOCOL, "an unknown opcode");
    if (((second & 0x80) != 0) != d->from_client)
        return bad(d, WS_CLOSE_PROTOCOL,
                   d->from_client ? "a frame without a mask" : "a frame with a mask");
    if (is_control(d->opcode) && (!d->fin || length > WS_CONTROL_MAX))
        return bad(d, WS_CLOSE_PROTOCOL, "a control frame that is long or in pieces");
    if (!is_control(d->opcode) && (d->opcode == WS_CONTINUATION) != (d->message != WS_CONTINUATION))
        return bad(d, WS_CLOSE_PROTOCOL, "the pieces of messages are mixed up");
    return WS_MORE;
}

static unsigned extended_length(const struct ws_decoder *d)
{
    unsigned length = d->head[1] & 0x7f;
    return length == 127 ? 8 : length == 126 ? 2 : 0;
}

static enum ws_step take_length(struct ws_decoder *d)
{
    unsigned extended = extended_length(d);
    uint64_t length = extended == 0 ? d->head[1] & 0x7f : 0;
    for (unsigned i = 0; i < extended; i++)
        length = length << 8 | d->head[2 + i];
    if ((extended == 2 && length < 126) || (extended == 8 && (length <= 0xffff || length >> 63)))
        return bad(d, WS_CLOSE_PROTOCOL, "a length that is not in its shortest form");
    d->left = length;
    if (is_control(d->opcode))
        return WS_MORE;
    if (length > d->message_max - d->message_len)
        return bad(d, WS_CLOSE_TOO_BIG, "a message that is too large");
    d->message_len += length;
    if (d->opcode != WS_CONTINUATION) {
        d->message = d->opcode;
        d->text = (struct ws_text){0};
    }
    return WS_MORE;
}

/* Eats the head of a frame. WS_MORE with in_frame: it is whole. */
static enum ws_step take_head(struct ws_decoder *d, const unsigned char *in, size_t len,
                              size_t *ret_used)
{
    size_t used = 0;
    enum ws_step step = WS_MORE;
    while (used < len && !d->in_frame && step == WS_MORE) {
        d->head[d->head_len++] = in[used++];
        if (d->head_len < 2)
            continue;
        if (d->head_len == 2)
            step = check_start(d);
        unsigned mask = d->from_client ? 4 : 0;
        unsigned whole = 2 + extended_length(d) + mask;
        if (step != WS_MORE || d->head_len < whole)
            continue;
        memcpy(d->mask, d->head + whole - mask, mask);
        step = take_length(d);
        d->in_frame = true;
        d->head_len = d->mask_at = 0;
    }
    *ret_used = used;
    return step;
}

static enum ws_step end_frame(struct ws_decoder *d)
{
    d->in_frame = false;
    if (is_control(d->opcode) || !d->fin)
        return WS_FRAME_END;
    if (d->message == WS_TEXT && d->text.need > 0)
        return bad(d, WS_CLOSE_BAD_TEXT, "text that is not UTF-8");
    d->opcode = d->message; /* of the whole message, for whoever asks at its end */
    d->message = WS_CONTINUATION;
    d->message_len = 0;
    return WS_FRAME_END;
}

enum ws_step ws_decode(struct ws_decoder *d, const void *in, size_t len, size_t *ret_used)
{
    *ret_used = 0;
    if (d->problem != NULL)
        return WS_BAD;
    if (!d->in_frame) {
        enum ws_step step = take_head(d, in, len, ret_used);
        if (step != WS_MORE || !d->in_frame)
            return step;
    }
    return d->left > 0 ? WS_DATA : end_frame(d);
}

bool ws_took(struct ws_decoder *d, void *data, size_t n)
{
    if (d->from_client)
        ws_mask(data, n, d->mask, d->mask_at);
    d->mask_at = (unsigned)((d->mask_at + n) % 4);
    d->left -= n;
    if (is_control(d->opcode) || d->message != WS_TEXT || ws_text_feed(&d->text, data, n))
        return true;
    bad(d, WS_CLOSE_BAD_TEXT, "text that is not UTF-8");
    return false;
}

/* --- sending --- */

size_t ws_header_encode(unsigned char out[WS_HEADER_MAX], enum ws_opcode opcode, bool fin,
                        uint64_t length, const uint8_t mask[4])
{
    size_t extended = length < 126 ? 0 : length <= 0xffff ? 2 : 8;
    out[0] = (unsigned char)((fin ? 0x80 : 0) | opcode);
    out[1] = (unsigned char)(extended == 0 ? length : extended == 2 ? 126 : 127);
    for (size_t i = 0; i < extended; i++)
        out[2 + i] = (unsigned char)(length >> 8 * (extended - 1 - i));
    if (mask == NULL)
        return 2 + extended;
    out[1] |= 0x80;
    memcpy(out + 2 + extended, mask, 4);
    return 2 + extended + 4;
}

void ws_mask(void *data, size_t len, const uint8_t mask[4], size_t at)
{
    unsigned char *bytes = data;
    uint8_t turned[4];
    for (size_t i = 0; i < 4; i++)
        turned[i] = mask[(at + i) % 4];
    uint32_t word, key;
    memcpy(&key, turned, sizeof(key));
    size_t i = 0;
    for (; len - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        word ^= key;
        memcpy(bytes + i, &word, sizeof(word));
    }
    for (; i < len; i++)
        bytes[i] ^= turned[i % 4];
}

/* --- closing --- */

bool ws_close_code_valid(unsigned code)
{
    if (code >= 3000 && code <= 4999) /* registered, and private */
        return true;
    return code >= 1000 && code <= 1014 && code != 1004 && code != WS_CLOSE_NO_CODE &&
           code != WS_CLOSE_ABNORMAL;
}

bool ws_close_parse(const unsigned char *payload, size_t len, unsigned *ret_code)
{
    *ret_code = WS_CLOSE_NO_CODE;
    if (len == 0)
        return true;
    if (len == 1)
        return false;
    struct ws_text text = {0};
    *ret_code = (unsigned)payload[0] << 8 | payload[1];
    return ws_close_code_valid(*ret_code) && ws_text_feed(&text, payload + 2, len - 2) &&
           text.need == 0;
}
