/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the body of a request ends. The framing of chunks is a small machine over single bytes; the
 * bytes inside a chunk are skipped at once.
 */

#include "egress/http_head.h"

enum chunk_state {
    CHUNK_SIZE,     /* hexadecimal digits */
    CHUNK_SIZE_END, /* LF behind them */
    CHUNK_DATA,
    CHUNK_DATA_END,  /* CR */
    CHUNK_DATA_END2, /* LF */
    CHUNK_LAST,      /* CR of the empty line behind the last chunk */
    CHUNK_LAST2,
};

enum { CHUNK_DIGITS_MAX = 15 };

void http_body_init(struct http_body *body, const struct http_head *head)
{
    *body = (struct http_body){.kind = head->body, .left = head->length};
    body->done =
        head->body == HTTP_BODY_NONE || (head->body == HTTP_BODY_LENGTH && head->length == 0);
    if (head->body == HTTP_BODY_CHUNKED)
        body->left = 0;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool size_byte(struct http_body *body, char c)
{
    int value = digit(c);
    if (value >= 0) {
        body->left = body->left << 4 | (uint64_t)value;
        return ++body->digits <= CHUNK_DIGITS_MAX;
    }
    body->state = CHUNK_SIZE_END;
    return c == '\r' && body->digits > 0;
}

/* One byte of the framing. false: it does not belong there. */
static bool chunk_byte(struct http_body *body, char c)
{
    switch ((enum chunk_state)body->state) {
    case CHUNK_SIZE:
        return size_byte(body, c);
    case CHUNK_SIZE_END:
        body->state = body->left > 0 ? CHUNK_DATA : CHUNK_LAST;
        body->digits = 0;
        return c == '\n';
    case CHUNK_DATA_END:
        body->state = CHUNK_DATA_END2;
        return c == '\r';
    case CHUNK_DATA_END2:
        body->state = CHUNK_SIZE;
        return c == '\n';
    case CHUNK_LAST:
        body->state = CHUNK_LAST2;
        return c == '\r';
    case CHUNK_LAST2:
        body->done = true;
        return c == '\n';
    case CHUNK_DATA:
        break;
    }
    return false;
}

static size_t skip(struct http_body *body, size_t len)
{
    size_t n = len < body->left ? len : (size_t)body->left;
    body->left -= n;
    return n;
}

ptrdiff_t http_body_feed(struct http_body *body, const char *data, size_t len, struct error *err)
{
    size_t at = 0;
    while (at < len && !body->done) {
        if (body->kind == HTTP_BODY_LENGTH) {
            at += skip(body, len - at);
            body->done = body->left == 0;
        } else if (body->state == CHUNK_DATA) {
            at += skip(body, len - at);
            if (body->left == 0)
                body->state = CHUNK_DATA_END;
        } else if (!chunk_byte(body, data[at++]))
            return error_set(err, ERROR_INVALID_HTTP,
                             "the chunks of the request make no sense, or have extensions or "
                             "trailers, which are not passed on");
    }
    return (ptrdiff_t)at;
}
