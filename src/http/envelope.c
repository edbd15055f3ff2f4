/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The error envelope, written by hand: this layer knows no JSON library, and this is the only JSON
 * it makes. Messages quote what clients sent, so every byte of them is suspect.
 */

#include "base/cleanup.h"
#include "http/conn.h"

/* The length of the UTF-8 sequence at text (NUL-terminated); 0: it is none. */
static size_t utf8_len(const unsigned char *text)
{
    static const struct {
        unsigned char mask, lead;
        size_t len;
        unsigned least;
    } forms[] = {{0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
    if (text[0] < 0x80)
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if ((text[0] & forms[i].mask) != forms[i].lead)
            continue;
        unsigned point = (unsigned)(text[0] & ~forms[i].mask);
        for (size_t n = 1; n < forms[i].len; n++) {
            if ((text[n] & 0xc0) != 0x80)
                return 0;
            point = point << 6 | (text[n] & 0x3f);
        }
        bool surrogate = point >= 0xd800 && point <= 0xdfff;
        return point < forms[i].least || point > 0x10ffff || surrogate ? 0 : forms[i].len;
    }
    return 0;
}

static void add_json_text(struct buf *b, const char *str)
{
    const unsigned char *text = (const unsigned char *)str;
    while (*text != '\0') {
        size_t len = utf8_len(text);
        if (len == 0) {
            buf_adds(b, "\\ufffd");
            len = 1;
        } else if (*text == '"' || *text == '\\')
            buf_addf(b, "\\%c", *text);
        else if (*text < 0x20 || *text == 0x7f)
            buf_addf(b, "\\u%04x", *text);
        else
            buf_add(b, text, len);
        text += len;
    }
}

int http_reply_error(struct http_exchange *x, const struct error *why, struct error *err)
{
    _cleanup_buf_ struct buf b = BUF_INIT(8 * ERROR_MESSAGE_MAX);
    buf_addf(&b, "{\"error\":{\"code\":\"%s\",\"message\":\"", error_name(why->code));
    add_json_text(&b, why->message);
    buf_adds(&b, "\"}}");
    return http_reply(x, error_http_status(why->code), "application/json", b.data, b.len, err);
}
