/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Malformed and unusual requests, over a real connection: bytes in, the status of every answer
 * out. Behind each row's bytes comes one more good request. It must be answered exactly when all
 * before it were served, and never after a rejection, however the bytes were cut into packets.
 */

#include "fixture.h"

#define LAST "GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

static const struct http_limits limits = {
    .headers_max = 4096, .target_max = 1024, .header_timeout_ms = 5000, .body_timeout_ms = 5000};

/* Reads the body, and answers with its length. */
static int echo(struct http_exchange *x, void *ctx, struct error *err)
{
    struct slice body;
    if (http_body_all(x, 1 << 20, &body, err) != 0)
        return -1;
    char *text = arena_printf(http_arena(x), "%s %s %zu", http_request(x)->method,
                              http_request(x)->path, body.len);
    return http_reply(x, 200, "text/plain", text, strlen(text), err);
}

struct row {
    const char *name;
    const char *bytes;
    const char *statuses; /* with LAST behind it */
};

#define OK  "200 200 " /* served, and LAST too */
#define BAD "400 "

static const struct row rows[] = {
    {"plain", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", OK},
    {"empty line in front", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", OK},
    {"two empty lines in front", "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", BAD},
    {"pipelined", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n",
     "200 200 200 "},
    {"body", "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", OK},
    {"body of a GET", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", OK},
    {"empty body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", OK},
    {"POST without length", "POST / HTTP/1.1\r\nHost: x\r\n\r\n", OK},
    {"chunks",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
     "5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
     OK},
    {"chunks and trailer",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
     "1\r\na\r\n0\r\nContent-Length: 9\r\nX: y\r\n\r\n",
     OK},
    {"no chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", OK},
    {"body that looks like a request",
     "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
     OK},
    {"absolute form", "GET http://h/p HTTP/1.1\r\nHost: x\r\n\r\n", OK},
    {"asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", OK},
    {"other method", "PROPFIND / HTTP/1.1\r\nHost: x\r\n\r\n", OK},
    {"continue, body sent at once",
     "PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab", NULL},
    {"close", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "200 "},
    {"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "200 "},
    {"HTTP/1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200 "},

    {"LF", "GET / HTTP/1.1\nHost: x\n\n", BAD},
    {"one LF", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", BAD},
    {"LF at the end", "GET / HTTP/1.1\r\nHost: x\r\n\n", BAD},
    {"CR", "GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n", BAD},
    {"CR CR LF", "GET / HTTP/1.1\r\nHost: x\r\r\n\r\n", BAD},
    {"folded", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", BAD},
    {"folded first", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", BAD},
    {"space before colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", BAD},
    {"no colon", "GET / HTTP/1.1\r\nHost: x\r\nfoo\r\n\r\n", BAD},
    {"no name", "GET / HTTP/1.1\r\nHost: x\r\n: foo\r\n\r\n", BAD},
    {"control character", "GET / HTTP/1.1\r\nHost: x\r\nA: \x0b\r\n\r\n", BAD},
    {"control in target", "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", BAD},
    {"high byte in target", "GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", BAD},
    {"two spaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", BAD},
    {"no version", "GET /\r\nHost: x\r\n\r\n", BAD},
    {"space at the start", " GET / HTTP/1.1\r\nHost: x\r\n\r\n", BAD},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", BAD},
    {"two Hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", BAD},
    {"bad Host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", BAD},
    {"fragment", "GET /#a HTTP/1.1\r\nHost: x\r\n\r\n", BAD},
    {"asterisk of a GET", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", BAD},
    {"authority form", "GET x:80 HTTP/1.1\r\nHost: x\r\n\r\n", BAD},
    {"CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "501 "},
    {"unknown method", "FOO / HTTP/1.1\r\nHost: x\r\n\r\n", "501 "},
    {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 "},
    {"HTTP/3", "GET / HTTP/3.0\r\nHost: x\r\n\r\n", "505 "},
    {"TLS", "\x16\x03\x01\x02", BAD},
    {"length and chunks",
     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
     "0\r\n\r\n",
     BAD},
    {"chunks and length",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
     "0\r\n\r\n",
     BAD},
    {"two lengths",
     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", BAD},
    {"list of lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nhello", BAD},
    {"signed length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello", BAD},
    {"huge length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551621\r\n\r\n",
     BAD},
    {"gzip coding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "501 "},
    {"gzip, chunked", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
     "501 "},
    {"chunked twice",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"
     "\r\n0\r\n\r\n",
     BAD},
    {"chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD},
    {"bad chunk size", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
     BAD},
    {"negative chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
     BAD},
    {"huge chunk",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", BAD},
    {"chunk with LF",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", BAD},
    {"chunk without CRLF",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n", BAD},
    {"chunk too long",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
     BAD},
    {"folded trailer",
     "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n",
     BAD},
    {"other expectation", "PUT / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nContent-Length: 1\r\n\r\na",
     "417 "},
    {"good, then bad", "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost : x\r\n\r\n",
     "200 400 "},
    {"bad, then good", "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", BAD},
    {"too large a body", "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n", "413 "},
};

static void send_in_steps(struct fixture *f, int fd, const char *bytes, size_t len, size_t step)
{
    struct error err;
    for (size_t at = 0; at < len; at += step) {
        /* The server may have said its last word before all of it was sent. */
        size_t n = len - at < step ? len - at : step;
        if (net_write(f->loop, fd, bytes + at, n, 5000, &err) != 0)
            return;
        if (step < len)
            co_sleep(f->loop, 0, &err);
    }
}

static void check_row(struct fixture *f, const struct row *row, size_t step)
{
    char statuses[128];
    char *bytes = malloc(strlen(row->bytes) + sizeof(LAST));
    size_t len =
        (size_t)snprintf(bytes, strlen(row->bytes) + sizeof(LAST), "%s%s", row->bytes, LAST);
    _cleanup_fd_ int fd = raw_connect(f);
    send_in_steps(f, fd, bytes, len, step == 0 ? len : step);
    char *stream = raw_read_all(f, fd);
    statuses_of(stream, statuses, sizeof(statuses));
    const char *want = row->statuses;
    if (want == NULL) /* 100 comes when the body was slower than the header */
        want = strncmp(statuses, "100 ", 4) == 0 ? "100 200 200 " : OK;
    if (strcmp(statuses, want) != 0)
        fail_msg("%s, step %zu: %s, not %s", row->name, step, statuses, want);
    if (strstr(stream, "HTTP/1.1 4") != NULL || strstr(stream, "HTTP/1.1 5") != NULL)
        assert_non_null(strstr(stream, "{\"error\":{\"code\":\""));
    free(stream);
    free(bytes);
}

static void check_rows(struct fixture *f)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(f, &rows[i], 0);
        check_row(f, &rows[i], 1);
        check_row(f, &rows[i], 7);
    }
}

static void every_row(void **state)
{
    fixture_run(echo, &limits, check_rows, NULL);
}

/* --- sizes --- */

static void check_size(struct fixture *f, const char *before, size_t filler, const char *after,
                       const char *want)
{
    char statuses[64];
    struct buf b = BUF_INIT(1 << 20);
    buf_adds(&b, before);
    for (size_t i = 0; i < filler; i++)
        buf_addc(&b, 'a');
    buf_adds(&b, after);
    buf_adds(&b, LAST);
    _cleanup_fd_ int fd = raw_connect(f);
    send_in_steps(f, fd, b.data, b.len, b.len);
    char *stream = raw_read_all(f, fd);
    statuses_of(stream, statuses, sizeof(statuses));
    assert_string_equal(statuses, want);
    free(stream);
    buf_release(&b);
}

static void check_sizes(struct fixture *f)
{
    const char *head = "GET / HTTP/1.1\r\nHost: x\r\nA: ", *end = "\r\n\r\n";
    size_t most = 4096 - strlen(head) - strlen(end);
    check_size(f, head, most, end, OK);
    check_size(f, head, most + 1, end, "431 ");
    check_size(f, head, 100000, end, "431 ");
    check_size(f, "GET /", 1000, " HTTP/1.1\r\nHost: x\r\n\r\n", OK);
    check_size(f, "GET /", 1100, " HTTP/1.1\r\nHost: x\r\n\r\n", "414 ");
    check_size(f, "GET /", 100000, " HTTP/1.1\r\nHost: x\r\n\r\n", "414 ");
    struct buf b = BUF_INIT(1 << 20);
    buf_adds(&b, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 99; i++)
        buf_adds(&b, "A: b\r\n");
    check_size(f, b.data, 0, "\r\n", OK);
    check_size(f, b.data, 0, "A: b\r\n\r\n", "431 ");
    buf_release(&b);
}

static void sizes_are_limited(void **state)
{
    fixture_run(echo, &limits, check_sizes, NULL);
}

/* A header larger than the first buffer, and a NUL, which no C string can bring. */
static void check_large(struct fixture *f)
{
    check_size(f, "GET / HTTP/1.1\r\nHost: x\r\nA: ", 60000, "\r\n\r\n", OK);
    check_size(f, "GET / HTTP/1.1\r\nHost: x\r\nA: ", 70000, "\r\n\r\n", "431 ");
    static const char nul[] = "GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n";
    char statuses[64];
    _cleanup_fd_ int fd = raw_connect(f);
    raw_send(f, fd, nul, sizeof(nul) - 1);
    char *stream = raw_read_all(f, fd);
    statuses_of(stream, statuses, sizeof(statuses));
    assert_string_equal(statuses, BAD);
    free(stream);
}

static void large_header_fits(void **state)
{
    fixture_run(echo, NULL, check_large, NULL);
}

/* --- ends too early --- */

static void check_cut(struct fixture *f)
{
    static const struct row cut[] = {
        {"nothing", "", ""},
        {"in the header", "GET / HTTP/1.1\r\nHost: x\r\n", BAD},
        {"in the body", "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhell", BAD},
        {"in a chunk", "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhell",
         BAD},
        {"before the last chunk",
         "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", BAD},
        {"after a whole one", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "200 "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cut); i++) {
        char statuses[64];
        _cleanup_fd_ int fd = raw_connect(f);
        raw_sends(f, fd, cut[i].bytes);
        shutdown(fd, SHUT_WR);
        char *stream = raw_read_all(f, fd);
        statuses_of(stream, statuses, sizeof(statuses));
        if (strcmp(statuses, cut[i].statuses) != 0)
            fail_msg("%s: %s, not %s", cut[i].name, statuses, cut[i].statuses);
        free(stream);
    }
}

static void requests_that_end_early(void **state)
{
    fixture_run(echo, &limits, check_cut, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(large_header_fits),
        cmocka_unit_test(requests_that_end_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
