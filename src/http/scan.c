/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finding the end of a head, byte by byte as it arrives.
 *
 * llhttp lets several things pass that RFC 9112 allows but two servers may understand in two
 * ways (folded lines, empty lines in front), and without a final line it waits for more bytes
 * that a bad client never sends. Here every line ends in CRLF, no line begins with a space, no
 * control character gets through, and size limits hold before anything is stored or parsed.
 */

#include "http/parse.h"

#include "base/limits.h"

/* The rest of a request line: the longest method, two spaces, the version. */
enum { REQUEST_LINE_REST = 32 };

static enum head_state bad(struct error *err, enum error_code code, const char *message)
{
    error_set(err, code, "%s", message);
    return HEAD_BAD;
}

/* The line that ends at scan->at (its LF included) is whole. */
static enum head_state end_line(struct head_scan *scan, struct error *err)
{
    bool empty = scan->at - scan->line == 2;
    scan->line = scan->at;
    if (!empty) {
        if (scan->lines++ > HTTP_HEADER_COUNT_MAX)
            return bad(err, ERROR_HEADERS_TOO_LARGE, "too many header fields");
        return HEAD_PARTIAL;
    }
    if (scan->lines > 0)
        return HEAD_WHOLE;
    if (scan->start > 0)
        return bad(err, ERROR_INVALID_HTTP, "a request line was expected");
    scan->start = scan->at; /* one empty line before a request: RFC 9112, 2.2 */
    return HEAD_PARTIAL;
}

static bool is_control(unsigned char c)
{
    return (c < 0x20 && c != '\t') || c == 0x7f;
}

static enum head_state check_byte(struct head_scan *scan, unsigned char c, struct error *err)
{
    bool begins_line = scan->at == scan->line;
    if (begins_line && (c == ' ' || c == '\t'))
        return bad(err, ERROR_INVALID_HTTP,
                   scan->lines == 0 ? "a request line was expected"
                                    : "a header field is folded over several lines");
    if (c == '\n')
        return bad(err, ERROR_INVALID_HTTP, "a line ends in LF without CR");
    if (is_control(c) && c != '\r')
        return bad(err, ERROR_INVALID_HTTP, "a control character in the header");
    scan->after_cr = c == '\r';
    return HEAD_PARTIAL;
}

enum head_state head_scan(struct head_scan *scan, const char *data, size_t len,
                          const struct http_limits *limits, struct error *err)
{
    while (scan->at < len) {
        unsigned char c = (unsigned char)data[scan->at];
        enum head_state state = HEAD_PARTIAL;
        if (scan->after_cr) {
            if (c != '\n')
                return bad(err, ERROR_INVALID_HTTP, "a CR that ends no line");
            scan->after_cr = false;
            scan->at++;
            state = end_line(scan, err);
        } else {
            state = check_byte(scan, c, err);
            if (state != HEAD_BAD)
                scan->at++;
        }
        if (state == HEAD_BAD)
            return state;
        if (scan->lines == 0 && scan->at - scan->start > limits->target_max + REQUEST_LINE_REST)
            return bad(err, ERROR_URI_TOO_LONG, "the request line is too long");
        if (scan->at > limits->headers_max)
            return bad(err, ERROR_HEADERS_TOO_LARGE, "the header is too large");
        if (state == HEAD_WHOLE)
            return state;
    }
    return HEAD_PARTIAL;
}
