/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The error envelope, written by hand: this layer knows no JSON library, and this is the only JSON
 * it makes. Messages quote what clients sent, so every byte of them is suspect.
 */

#include "base/cleanup.h"
#include "base/utf8.h"
#include "http/conn.h"

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
