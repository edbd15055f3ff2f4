/* SPDX-License-Identifier: Apache-2.0 */

/* Requests: what is read, what is refused, what is sent on, and where bodies end. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "egress/http_head.h"

static enum http_head_state read_text(const char *text, size_t len, struct http_head *head,
                                      struct error *err)
{
    return http_head_read((struct slice){text, len}, 0, head, err);
}

static void assert_slice(struct slice is, const char *should)
{
    assert_int_equal(is.len, strlen(should));
    assert_memory_equal(is.data, should, is.len);
}

#define REQUEST "GET /a?b HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n"

static void test_good(void **state)
{
    struct http_head head;
    struct error err;
    for (size_t len = 1; len < sizeof(REQUEST) - 1; len++)
        assert_int_equal(read_text(REQUEST, len, &head, &err), HTTP_HEAD_MORE);
    assert_int_equal(read_text(REQUEST "GET", sizeof(REQUEST) + 2, &head, &err), HTTP_HEAD_DONE);
    assert_int_equal(head.size, sizeof(REQUEST) - 1);
    assert_slice(head.method, "GET");
    assert_slice(head.target, "/a?b");
    assert_slice(head.host, "example.com");
    assert_int_equal(head.body, HTTP_BODY_NONE);
    assert_false(head.close);
    assert_false(head.websocket);
}

static void test_looked(void **state)
{
    struct http_head head;
    struct error err;
    for (size_t looked = 0; looked < sizeof(REQUEST) - 1; looked++)
        assert_int_equal(http_head_read(slice_of(REQUEST), looked, &head, &err), HTTP_HEAD_DONE);
}

#define GET  "GET / HTTP/1.1\r\n"
#define HOST "Host: good.example\r\n"

static const struct {
    const char *text;
    size_t len; /* 0: of the string */
} wrong[] = {
    {"CONNECT evil.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n"},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    {"GET / HTTP/2.0\r\n" HOST "\r\n"},
    {"GET / HTTP/1.2\r\n" HOST "\r\n"},
    {"GET / HTTP/0.9\r\n" HOST "\r\n"},
    {"GET /\r\n\r\n"},
    {GET "\r\n"},
    {GET "Host:\r\n\r\n"},
    {GET HOST "Host: evil.example\r\n\r\n"},
    {GET HOST "host: good.example\r\n\r\n"},
    {GET "Host : good.example\r\n\r\n"},
    {GET " Host: good.example\r\n\r\n"},
    {GET HOST " folded\r\n\r\n"},
    {GET HOST "X: a\rb\r\n\r\n"},
    {GET HOST "X: a\nHost: evil.example\r\n\r\n"},
    {GET HOST "X: a\0b\r\n\r\n", sizeof(GET HOST) - 1 + 10},
    {GET HOST "no colon\r\n\r\n"},
    {GET HOST ": empty\r\n\r\n"},
    {"GET http://evil.example/ HTTP/1.1\r\n" HOST "\r\n"},
    {"GET http://good.example@evil.example/ HTTP/1.1\r\n" HOST "\r\n"},
    {"GET https://good.example/ HTTP/1.1\r\n" HOST "\r\n"},
    {"GET good.example HTTP/1.1\r\n" HOST "\r\n"},
    {"GET * HTTP/1.1\r\n" HOST "\r\n"},
    {"GET /a b HTTP/1.1 \r\n" HOST "\r\n"},
    {"GET\t/ HTTP/1.1\r\n" HOST "\r\n"},
    {GET HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"},
    {GET HOST "Content-Length: 1, 1\r\n\r\n"},
    {GET HOST "Content-Length: +1\r\n\r\n"},
    {GET HOST "Content-Length: 0x1\r\n\r\n"},
    {GET HOST "Content-Length:\r\n\r\n"},
    {GET HOST "Content-Length: 99999999999999999999\r\n\r\n"},
    {GET HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {GET HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"},
    {GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {GET HOST "Transfer-Encoding: xchunked\r\n\r\n"},
    {"GET / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"},
    {"\x16\x03\x01"},
    {"\r\nGET / HTTP/1.1\r\n" HOST "\r\n"},
    {"\x05\x01", 3},
    {"GET / HTTP/1.1\n" HOST "\r\n"},
};

static void test_wrong(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct http_head head;
        struct error err = {0};
        size_t len = wrong[i].len != 0 ? wrong[i].len : strlen(wrong[i].text);
        enum http_head_state is = read_text(wrong[i].text, len, &head, &err);
        if (is != HTTP_HEAD_REFUSED)
            print_error("row %zu: %s\n", i, wrong[i].text);
        assert_int_equal(is, HTTP_HEAD_REFUSED);
        assert_int_not_equal(err.code, ERROR_NONE);
        assert_string_not_equal(err.message, "");
    }
}

static void test_too_large(void **state)
{
    struct http_head head;
    struct error err;
    _cleanup_buf_ struct buf text = BUF_INIT(1 << 20);
    buf_adds(&text, GET HOST);
    for (int i = 0; i < HTTP_HEAD_FIELDS_MAX; i++)
        buf_adds(&text, "A: b\r\n");
    buf_adds(&text, "\r\n");
    assert_int_equal(read_text(text.data, text.len, &head, &err), HTTP_HEAD_REFUSED);
    assert_int_equal(err.code, ERROR_HEADERS_TOO_LARGE);
    buf_clear(&text);
    buf_adds(&text, GET "A: ");
    while (text.len < HTTP_HEAD_MAX)
        buf_addc(&text, 'a');
    assert_int_equal(read_text(text.data, text.len, &head, &err), HTTP_HEAD_REFUSED);
    assert_int_equal(err.code, ERROR_HEADERS_TOO_LARGE);
}

static void assert_written(const char *in, bool upgrade, const char *should)
{
    struct http_head head;
    struct error err = {0};
    _cleanup_buf_ struct buf out = BUF_INIT(10000);
    const struct http_head_changes changes = {.host = "good.example", .upgrade = upgrade};
    assert_int_equal(read_text(in, strlen(in), &head, &err), HTTP_HEAD_DONE);
    http_head_write(&out, &head, &changes);
    assert_string_equal(out.data, should);
}

static void test_written(void **state)
{
    assert_written("GET HTTP://Good.Example:80/x HTTP/1.1\r\nHOST: good.example:80\r\n\r\n", false,
                   "GET /x HTTP/1.1\r\nHost: good.example\r\n\r\n");
    assert_written("GET http://good.example HTTP/1.1\r\n" HOST "\r\n", false,
                   "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n");
    assert_written("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", false,
                   "OPTIONS * HTTP/1.1\r\nHost: good.example\r\n\r\n");
    assert_written("POST / HTTP/1.1\r\n" HOST
                   "Connection: close, X-Mine, content-length\r\nX-Mine: 1\r\nX-Other:  2 \r\n"
                   "Content-Length: 3\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\n"
                   "HTTP2-Settings: x\r\n\r\n",
                   true,
                   "POST / HTTP/1.1\r\nHost: good.example\r\nX-Other: 2\r\nContent-Length: 3\r\n"
                   "Connection: close\r\n\r\n");
}

#define UPGRADE "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n"

static void test_websocket(void **state)
{
    static const char with[] = GET HOST UPGRADE "\r\n";
    assert_written(with, true,
                   GET HOST "Sec-WebSocket-Key: k\r\nUpgrade: websocket\r\n"
                            "Connection: Upgrade\r\n\r\n");
    assert_written(with, false, GET HOST "Sec-WebSocket-Key: k\r\n\r\n");
    static const char *const others[] = {
        GET HOST "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        GET HOST "Upgrade: websocket\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST UPGRADE "\r\n",
        GET HOST UPGRADE "Content-Length: 1\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct http_head head;
        struct error err;
        assert_int_equal(read_text(others[i], strlen(others[i]), &head, &err), HTTP_HEAD_DONE);
        assert_false(head.websocket);
    }
}

/* --- bodies --- */

/* How many bytes of the text belong to the body, fed in pieces; -1: wrong, -2: not done. */
static ptrdiff_t body_size(const char *framing, const char *text, size_t piece)
{
    _cleanup_buf_ struct buf request = BUF_INIT(1000);
    struct http_head head;
    struct http_body body;
    struct error err;
    size_t total = 0, len = strlen(text);
    buf_addf(&request, "POST / HTTP/1.1\r\n" HOST "%s\r\n\r\n", framing);
    assert_int_equal(read_text(request.data, request.len, &head, &err), HTTP_HEAD_DONE);
    http_body_init(&body, &head);
    while (!body.done && total < len) {
        ptrdiff_t n =
            http_body_feed(&body, text + total, len - total < piece ? len - total : piece, &err);
        if (n < 0)
            return -1;
        total += (size_t)n;
    }
    return body.done ? (ptrdiff_t)total : -2;
}

#define CHUNKED "Transfer-Encoding: chunked"

static void test_bodies(void **state)
{
    static const struct {
        const char *framing, *text;
        ptrdiff_t size;
    } rows[] = {
        {"Content-Length: 0", "GET", 0},
        {"Content-Length: 3", "abcGET", 3},
        {"Content-Length: 4", "abc", -2},
        {"X: y", "GET", 0},
        {CHUNKED, "0\r\n\r\nGET", 5},
        {CHUNKED, "3\r\nabc\r\n0\r\n\r\nGET", 13},
        {CHUNKED, "A\r\n0123456789\r\n0\r\n\r\n", 20},
        {CHUNKED, "0003\r\nabc\r\n0\r\n\r\n", 16},
        {CHUNKED, "3\r\nabc\r\n", -2},
        {CHUNKED, "3;x=y\r\nabc\r\n0\r\n\r\n", -1},
        {CHUNKED, "3\nabc\r\n0\r\n\r\n", -1},
        {CHUNKED, "\r\n0\r\n\r\n", -1},
        {CHUNKED, "-1\r\n", -1},
        {CHUNKED, "0x3\r\nabc\r\n0\r\n\r\n", -1},
        {CHUNKED, "3\r\nabcd\r\n0\r\n\r\n", -1},
        {CHUNKED, "fffffffffffffffff\r\n", -1},
        {CHUNKED, "0\r\nHost: evil.example\r\n\r\n", -1},
        {CHUNKED, "0\r\n\rX", -1},
    };
    static const size_t pieces[] = {1, 2, 3, 1000};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t k = 0; k < ARRAY_LEN(pieces); k++)
            assert_int_equal(body_size(rows[i].framing, rows[i].text, pieces[k]), rows[i].size);
}

static void test_answer_status(void **state)
{
    assert_int_equal(http_answer_status(slice_of("HTTP/1.1 101 Switching\r\n\r\n")), 101);
    assert_int_equal(http_answer_status(slice_of("HTTP/1.0 200\r\n\r\n")), 200);
    assert_int_equal(http_answer_status(slice_of("HTTP/1.1 1010 x\r\n\r\n")), 0);
    assert_int_equal(http_answer_status(slice_of("HTTP/2.0 101 x\r\n\r\n")), 0);
    assert_int_equal(http_answer_status(slice_of("101")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_looked),
        cmocka_unit_test(test_wrong),   cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_written), cmocka_unit_test(test_websocket),
        cmocka_unit_test(test_bodies),  cmocka_unit_test(test_answer_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
