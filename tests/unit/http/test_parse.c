/* SPDX-License-Identifier: Apache-2.0 */

/* Heads and chunks, without any socket: what each byte sequence means, however it is cut up. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "http/chunk.h"
#include "http/parse.h"

static const struct http_limits limits = {.headers_max = 2048, .target_max = 256};

/* Scans what comes in pieces of `step` bytes; HEAD_PARTIAL at the end means: still not whole. */
static enum head_state scan_in_steps(const char *data, size_t len, size_t step,
                                     struct head_scan *scan, struct error *err)
{
    *scan = (struct head_scan){0};
    enum head_state state = HEAD_PARTIAL;
    for (size_t n = 0; n < len && state == HEAD_PARTIAL;) {
        n = n + step < len ? n + step : len;
        state = head_scan(scan, data, n, &limits, err);
    }
    return state;
}

static void scan_finds_the_end(void **state)
{
    static const struct {
        const char *data;
        enum head_state state;
        size_t at, start;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", HEAD_WHOLE, 27, 0},
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\nBODY\r\n\r\n", HEAD_WHOLE, 27, 0},
        {"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", HEAD_WHOLE, 29, 2},
        {"GET / HTTP/1.1\r\n\r\n", HEAD_WHOLE, 18, 0},
        {"GET / HTTP/1.1\r\nHost: x\r\n\r", HEAD_PARTIAL, 26, 0},
        {"GET / HTTP/1.1\r\nHost: x\r\n", HEAD_PARTIAL, 25, 0},
        {"\r\n", HEAD_PARTIAL, 2, 2},
        {"\r\n\r\n", HEAD_BAD, 0, 0},
        {"\n", HEAD_BAD, 0, 0},
        {" GET / HTTP/1.1\r\n", HEAD_BAD, 0, 0},
        {"GET / HTTP/1.1\n", HEAD_BAD, 0, 0},
        {"GET / HTTP/1.1\r\nHost: x\n", HEAD_BAD, 0, 0},
        {"GET / HTTP/1.1\r\nHost: x\rY", HEAD_BAD, 0, 0},
        {"GET / HTTP/1.1\r\r", HEAD_BAD, 0, 0},
        {"GET / HTTP/1.1\r\nA: b\r\n c", HEAD_BAD, 0, 0},
        {"GET / HTTP/1.1\r\nA: b\r\n\tc", HEAD_BAD, 0, 0},
        {"GET / HTTP/1.1\r\nA: \x01", HEAD_BAD, 0, 0},
        {"GET / HTTP/1.1\r\nA: \x7f", HEAD_BAD, 0, 0},
        {"\x16\x03\x01", HEAD_BAD, 0, 0}, /* a TLS client */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].data);
        for (size_t step = 1; step <= len; step++) {
            struct head_scan scan;
            struct error err = {0};
            enum head_state got = scan_in_steps(rows[i].data, len, step, &scan, &err);
            if (got != rows[i].state)
                fail_msg("row %zu, step %zu: %d, not %d", i, step, got, rows[i].state);
            if (got == HEAD_BAD) {
                assert_int_equal(err.code, ERROR_INVALID_HTTP);
                continue;
            }
            assert_int_equal(scan.at, rows[i].at);
            assert_int_equal(scan.start, rows[i].start);
        }
    }
    struct head_scan scan = {0};
    struct error err;
    assert_int_equal(head_scan(&scan, "GET /\0", 6, &limits, &err), HEAD_BAD);
}

static void scan_keeps_the_limits(void **state)
{
    char data[4096];
    struct head_scan scan;
    struct error err;
    memset(data, 'a', sizeof(data));
    memcpy(data, "GET /", 5);
    assert_int_equal(scan_in_steps(data, 256, 256, &scan, &err), HEAD_PARTIAL);
    assert_int_equal(scan_in_steps(data, sizeof(data), 100, &scan, &err), HEAD_BAD);
    assert_int_equal(err.code, ERROR_URI_TOO_LONG);

    memcpy(data, "GET / HTTP/1.1\r\nA: ", 19);
    assert_int_equal(scan_in_steps(data, 2048, 2048, &scan, &err), HEAD_PARTIAL);
    assert_int_equal(scan_in_steps(data, 2049, 2049, &scan, &err), HEAD_BAD);
    assert_int_equal(err.code, ERROR_HEADERS_TOO_LARGE);

    for (int fields = HTTP_HEADER_COUNT_MAX; fields <= HTTP_HEADER_COUNT_MAX + 1; fields++) {
        size_t at = (size_t)snprintf(data, sizeof(data), "GET / HTTP/1.1\r\n");
        for (int i = 0; i < fields; i++)
            at += (size_t)snprintf(data + at, sizeof(data) - at, "a:b\r\n");
        at += (size_t)snprintf(data + at, sizeof(data) - at, "\r\n");
        bool fits = fields == HTTP_HEADER_COUNT_MAX;
        assert_int_equal(scan_in_steps(data, at, 7, &scan, &err), fits ? HEAD_WHOLE : HEAD_BAD);
        if (!fits)
            assert_int_equal(err.code, ERROR_HEADERS_TOO_LARGE);
    }
}

/* --- requests --- */

static int parse(struct arena *arena, const char *text, struct request_head *head,
                 struct error *err)
{
    return request_parse(arena, text, strlen(text), head, err);
}

static void requests_are_rejected(void **state)
{
    static const struct {
        const char *text;
        enum error_code code;
    } rows[] = {
        /* request line */
        {"GET /\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET /  HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1 \r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"G@T / HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"/ HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1x\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / http/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/11\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/01.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", ERROR_HTTP_VERSION},
        {"GET / HTTP/1.2\r\nHost: x\r\n\r\n", ERROR_HTTP_VERSION},
        {"GET / HTTP/0.9\r\nHost: x\r\n\r\n", ERROR_HTTP_VERSION},
        {"PRI * HTTP/2.0\r\n\r\n", ERROR_HTTP_VERSION},
        /* methods */
        {"FOO / HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_NOT_IMPLEMENTED},
        {"get / HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_NOT_IMPLEMENTED},
        {"GETX / HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_NOT_IMPLEMENTED},
        {"GE / HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_NOT_IMPLEMENTED},
        {"DESCRIBE / HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_NOT_IMPLEMENTED},
        {"CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_NOT_IMPLEMENTED},
        {"CONNECT a:80 HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_NOT_IMPLEMENTED},
        /* targets */
        {"GET a:80 HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET * HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET ftp://a/ HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET http://u:p@a/ HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET a/b HTTP/1.1\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        /* Host */
        {"GET / HTTP/1.1\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: x\r\nhOST: y\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET http://a/ HTTP/1.1\r\n\r\n", ERROR_INVALID_HTTP},
        /* fields */
        {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost\t: x\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: x\r\nnocolon\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: x\r\n: v\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: x\r\nA B: v\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: x\r\nA(: v\r\n\r\n", ERROR_INVALID_HTTP},
        {"GET / HTTP/1.1\r\nHost: x\r\n\xc3\xa9: v\r\n\r\n", ERROR_INVALID_HTTP},
        /* length */
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\n", ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1 1\r\n\r\n", ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\n", ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1,1\r\n\r\n", ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1.0\r\n\r\n", ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
         ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
         ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
         ERROR_INVALID_HTTP},
        /* transfer coding */
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
         ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
         ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", ERROR_NOT_IMPLEMENTED},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
         ERROR_NOT_IMPLEMENTED},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n",
         ERROR_NOT_IMPLEMENTED},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
         ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
         ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n",
         ERROR_NOT_IMPLEMENTED},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \"chunked\"\r\n\r\n",
         ERROR_NOT_IMPLEMENTED},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
         "Transfer-Encoding: chunked\r\n\r\n",
         ERROR_INVALID_HTTP},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\r\n", ERROR_INVALID_HTTP},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", ERROR_INVALID_HTTP},
        /* expectations */
        {"POST / HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\nContent-Length: 1\r\n\r\n",
         ERROR_EXPECTATION_FAILED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *arena = arena_new();
        struct request_head head;
        struct error err = {0};
        if (parse(arena, rows[i].text, &head, &err) == 0)
            fail_msg("accepted: %s", rows[i].text);
        if (err.code != rows[i].code)
            fail_msg("%s (%s), not %s: %s", error_name(err.code), err.message,
                     error_name(rows[i].code), rows[i].text);
        arena_free(arena);
    }
}

static void requests_are_taken_apart(void **state)
{
    static const struct {
        const char *text;
        const char *method, *target, *path, *query, *host;
        int64_t length;
        bool close, expects;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET", "/", "/", "", "x", 0, false, false},
        {"GET /a/b%2Fc?d=e&f HTTP/1.1\r\nHost:x:80\r\n\r\n", "GET", "/a/b%2Fc?d=e&f", "/a/b%2Fc",
         "d=e&f", "x:80", 0, false, false},
        {"GET /a?? HTTP/1.1\r\nHost: [::1]:80  \r\n\r\n", "GET", "/a??", "/a", "?", "[::1]:80", 0,
         false, false},
        {"GET //a//b HTTP/1.1\r\nHost:\r\n\r\n", "GET", "//a//b", "//a//b", "", "", 0, false,
         false},
        {"GET http://h.org/p?q HTTP/1.1\r\nHost: other\r\n\r\n", "GET", "http://h.org/p?q", "/p",
         "q", "h.org", 0, false, false},
        {"GET HTTPS://h.org?q HTTP/1.1\r\nHost: other\r\n\r\n", "GET", "HTTPS://h.org?q", "/", "q",
         "h.org", 0, false, false},
        {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS", "*", "*", "", "x", 0, false, false},
        {"HEAD / HTTP/1.0\r\n\r\n", "HEAD", "/", "/", "", "", 0, true, false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET", "/", "/", "", "", 0, true,
         false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, CLOSE ,bar\r\n\r\n", "GET", "/", "/", "",
         "x", 0, true, false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n", "GET", "/", "/", "", "x", 0,
         false, false},
        {"PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 005\r\n\r\n", "PUT", "/f", "/f", "", "x", 5,
         false, false},
        {"PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999999999\r\n\r\n", "PUT", "/f",
         "/f", "", "x", 999999999999999999, false, false},
        {"PATCH /f HTTP/1.1\r\nHost: x\r\ntransfer-encoding: Chunked\r\nExpect: "
         "100-Continue\r\n\r\n",
         "PATCH", "/f", "/f", "", "x", -1, false, true},
        {"DELETE /f HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", "DELETE",
         "/f", "/f", "", "x", 0, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *arena = arena_new();
        struct request_head head;
        struct error err = {0};
        if (parse(arena, rows[i].text, &head, &err) != 0)
            fail_msg("%s: %s", err.message, rows[i].text);
        assert_string_equal(head.request.method, rows[i].method);
        assert_string_equal(head.request.target, rows[i].target);
        assert_string_equal(head.request.path, rows[i].path);
        assert_string_equal(head.request.query, rows[i].query);
        assert_string_equal(head.request.host, rows[i].host);
        assert_int_equal(head.request.content_length, rows[i].length);
        assert_int_equal(head.close, rows[i].close);
        assert_int_equal(head.expects_continue, rows[i].expects);
        assert_int_equal(head.chunked, rows[i].length < 0);
        arena_free(arena);
    }
}

static void fields_are_trimmed(void **state)
{
    struct arena *arena = arena_new();
    struct request_head head;
    struct error err;
    assert_int_equal(parse(arena,
                           "GET / HTTP/1.1\r\nHost:x\r\nEmpty:\r\nBlank: \t \r\n"
                           "Text: \t a b\tc \t\r\nUtf: \xc3\xa9\r\nLast:z\r\n\r\n",
                           &head, &err),
                     0);
    static const struct http_header want[] = {{"Host", "x"},       {"Empty", ""},
                                              {"Blank", ""},       {"Text", "a b\tc"},
                                              {"Utf", "\xc3\xa9"}, {"Last", "z"}};
    assert_int_equal(head.request.header_count, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_string_equal(head.request.headers[i].name, want[i].name);
        assert_string_equal(head.request.headers[i].value, want[i].value);
    }
    arena_free(arena);
}

static void lists_are_searched(void **state)
{
    assert_true(http_list_has("close", "close"));
    assert_true(http_list_has(" a,,\tCLOSE , b", "close"));
    assert_false(http_list_has("", "close"));
    assert_false(http_list_has("closed, enclose", "close"));
    assert_false(http_list_has("a b", "b"));
}

/* --- chunks --- */

/* Decodes what comes in pieces of `step` bytes; gives the body, or NULL when it is malformed. */
static char *decode(const char *in, size_t len, size_t step, size_t *ret_used, bool *ret_ended)
{
    struct chunk_decoder d = {0};
    char *body = calloc(1, len + 1);
    size_t body_len = 0, at = 0, have = 0;
    *ret_ended = false;
    while (!*ret_ended) {
        size_t used = 0;
        enum chunk_step next = chunk_decode(&d, in + at, have - at, &used, NULL);
        if (next == CHUNK_BAD) {
            free(body);
            return NULL;
        }
        at += used;
        if (next == CHUNK_END)
            *ret_ended = true;
        else if (next == CHUNK_DATA && have > at) {
            size_t n = have - at < d.left ? have - at : (size_t)d.left;
            memcpy(body + body_len, in + at, n);
            body_len += n;
            at += n;
            chunk_took(&d, n);
        } else if (have == len)
            break;
        else
            have = have + step < len ? have + step : len;
    }
    *ret_used = at;
    return body;
}

static void chunks_are_decoded(void **state)
{
    static const struct {
        const char *in;
        const char *body; /* NULL: malformed */
        size_t rest;      /* bytes behind the end that are not its own */
        bool ended;
    } rows[] = {
        {"0\r\n\r\n", "", 0, true},
        {"5\r\nhello\r\n0\r\n\r\nGET", "hello", 3, true},
        {"5\r\nhello\r\n00000A\r\n0123456789\r\n0\r\n\r\n", "hello0123456789", 0, true},
        {"a;x=y\r\n0123456789\r\n0;z\r\nT: v\r\nU:\r\n\r\n", "0123456789", 0, true},
        {"1 ; a\r\nx\r\n0\r\n\r\n", "x", 0, true},
        {"5\r\nhel", "hel", 0, false},
        {"0\r\n", "", 0, false},
        {"\r\n", NULL, 0, false},
        {"g\r\n", NULL, 0, false},
        {"-1\r\n", NULL, 0, false},
        {"0x5\r\nhello\r\n", NULL, 0, false},
        {"5 \r\nhello\r\n", NULL, 0, false},
        {" 5\r\nhello\r\n", NULL, 0, false},
        {"5\nhello\r\n", NULL, 0, false},
        {"5\r\nhello\n0\r\n\r\n", NULL, 0, false},
        {"5\r\nhelloX\r\n", NULL, 0, false},
        {"5\r\nhello0\r\n\r\n", NULL, 0, false},
        {"5\r\rhello\r\n", NULL, 0, false},
        {"5;\nhello\r\n", NULL, 0, false},
        {"5;a\rb\r\nhello\r\n", NULL, 0, false},
        {"ffffffffffffffff\r\n", NULL, 0, false},
        {"0000000000000001\r\nx\r\n", NULL, 0, false}, /* more digits than anybody needs */
        {"0\r\n\n", NULL, 0, false},
        {"0\r\nT : v\r\n\r\n", NULL, 0, false},
        {"0\r\n: v\r\n\r\n", NULL, 0, false},
        {"0\r\nT: v\r\n folded\r\n\r\n", NULL, 0, false},
        {"0\r\nnocolon\r\n\r\n", NULL, 0, false},
        {"0\r\nT: \x01\r\n\r\n", NULL, 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].in);
        for (size_t step = 1; step <= len; step++) {
            size_t used = 0;
            bool ended;
            char *body = decode(rows[i].in, len, step, &used, &ended);
            if ((body == NULL) != (rows[i].body == NULL))
                fail_msg("row %zu: %s", i, body == NULL ? "rejected" : "accepted");
            if (body == NULL)
                continue;
            assert_string_equal(body, rows[i].body);
            assert_int_equal(ended, rows[i].ended);
            assert_int_equal(used, len - rows[i].rest);
            free(body);
        }
    }
}

static void chunk_lines_are_limited(void **state)
{
    char in[16384] = "5;";
    size_t used;
    bool ended;
    memset(in + 2, 'x', 1000);
    assert_null(decode(in, 1002, 1002, &used, &ended));
    size_t at = (size_t)snprintf(in, sizeof(in), "0\r\n");
    while (at < sizeof(in) - 100)
        at += (size_t)snprintf(in + at, sizeof(in) - at, "T: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n");
    assert_null(decode(in, at, at, &used, &ended));
}

/* --- answers --- */

static void answers_are_taken_apart(void **state)
{
    struct arena *arena = arena_new();
    struct answer_head head;
    struct error err;
    static const char text[] = "HTTP/1.1 204 No Content\r\nA: b\r\nConnection: close\r\n\r\n";
    assert_int_equal(answer_parse(arena, text, sizeof(text) - 1, &head, &err), 0);
    assert_int_equal(head.status, 204);
    assert_int_equal(head.content_length, -1);
    assert_true(head.close);
    assert_string_equal(head.headers[0].value, "b");
    static const char *const bad[] = {
        "HTTP/1.1 abc OK\r\n\r\n",
        "FTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(answer_parse(arena, bad[i], strlen(bad[i]), &head, &err), -1);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_finds_the_end),      cmocka_unit_test(scan_keeps_the_limits),
        cmocka_unit_test(requests_are_rejected),   cmocka_unit_test(requests_are_taken_apart),
        cmocka_unit_test(fields_are_trimmed),      cmocka_unit_test(lists_are_searched),
        cmocka_unit_test(chunks_are_decoded),      cmocka_unit_test(chunk_lines_are_limited),
        cmocka_unit_test(answers_are_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
