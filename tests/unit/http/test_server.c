/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The server's behaviour beyond parsing: keeping connections, streaming in constant memory,
 * slow and vanishing clients, answers of all kinds, shutting down.
 */

#include "fixture.h"

#include <errno.h>
#include <poll.h>

#include "loop/fiber.h"
#include "observe/meters.h"

enum { BIG = 64 << 20, PIECE = 64 * 1024 };

static void check_statuses(struct fixture *f, int fd, const char *want)
{
    char statuses[64];
    char *stream = raw_read_all(f, fd);
    statuses_of(stream, statuses, sizeof(statuses));
    assert_string_equal(statuses, want);
    free(stream);
}

/* --- one handler for many paths --- */

static int reply_text(struct http_exchange *x, const char *text, struct error *err)
{
    return http_reply(x, 200, "text/plain", text, strlen(text), err);
}

static int serve_query(struct http_exchange *x, struct error *err)
{
    const char *value;
    if (http_query(x, "k ey", &value, err) != 0)
        return -1;
    return reply_text(x, value == NULL ? "(none)" : value, err);
}

static int serve_stream(struct http_exchange *x, struct error *err)
{
    if (http_reply_start(x, 200, "text/plain", -1, err) != 0)
        return -1;
    if (http_reply_write(x, "abc", 3, err) != 0 || http_reply_write(x, "", 0, err) != 0)
        return -1;
    return http_reply_write(x, "defgh", 5, err); /* the end is made for us */
}

static int serve_length(struct http_exchange *x, struct error *err)
{
    if (http_reply_start(x, 200, "text/plain", 6, err) != 0)
        return -1;
    if (http_reply_write(x, "abc", 3, err) != 0)
        return -1;
    assert_int_equal(http_reply_write(x, "toolong", 7, err), -1);
    if (http_reply_write(x, "def", 3, err) != 0)
        return -1;
    return http_reply_end(x, err);
}

static int serve_short(struct http_exchange *x, struct error *err)
{
    if (http_reply_start(x, 200, "text/plain", 6, err) != 0)
        return -1;
    return http_reply_write(x, "abc", 3, err);
}

static int serve_error(struct http_exchange *x, struct error *err)
{
    http_set_header(x, "X-Evil", "a\r\nSet-Cookie: b%s", "\n");
    return error_set(err, ERROR_SANDBOX_NOT_FOUND,
                     "no \"sandbox\" \\ \x01\xc3\xa9\xff\xed\xa0\x80");
}

static int serve_late_error(struct http_exchange *x, struct error *err)
{
    if (http_reply_start(x, 200, "text/plain", -1, err) != 0 ||
        http_reply_write(x, "abc", 3, err) != 0)
        return -1;
    return error_set(err, ERROR_INTERNAL, "too late");
}

static int serve_body(struct http_exchange *x, struct error *err)
{
    struct slice body;
    if (http_body_all(x, 100, &body, err) != 0)
        return -1;
    assert_int_equal(body.data[body.len], '\0');
    return http_reply(x, 200, "text/plain", body.data, body.len, err);
}

static int serve_twice(struct http_exchange *x, struct error *err)
{
    if (reply_text(x, "first", err) != 0)
        return -1;
    assert_int_equal(reply_text(x, "second", err), -1);
    return 0;
}

static int serve_accept(struct http_exchange *x, struct error *err)
{
    const char *type = "application/octet-stream";
    return reply_text(x,
                      http_accepts(x, type)      ? "accepts"
                      : http_content_is(x, type) ? "content"
                                                 : "neither",
                      err);
}

static int serve_peer(struct http_exchange *x, struct error *err)
{
    return reply_text(
        x, strncmp(http_request(x)->peer, "127.0.0.1:", 10) == 0 ? "yes" : http_request(x)->peer,
        err);
}

static int serve_empty(struct http_exchange *x, struct error *err)
{
    return http_reply(x, 204, NULL, NULL, 0, err);
}

static int serve_nothing(struct http_exchange *x, struct error *err)
{
    return 0;
}

static int serve_unread(struct http_exchange *x, struct error *err)
{
    return reply_text(x, "unread", err);
}

static const struct {
    const char *path;
    int (*serve)(struct http_exchange *x, struct error *err);
} paths[] = {
    {"/query", serve_query},           {"/stream", serve_stream},
    {"/length", serve_length},         {"/short", serve_short},
    {"/error", serve_error},           {"/body", serve_body},
    {"/late-error", serve_late_error}, {"/twice", serve_twice},
    {"/accept", serve_accept},         {"/peer", serve_peer},
    {"/empty", serve_empty},           {"/nothing", serve_nothing},
    {"/unread", serve_unread},
};

static int serve(struct http_exchange *x, void *ctx, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (strcmp(http_request(x)->path, paths[i].path) == 0)
            return paths[i].serve(x, err);
    return error_set(err, ERROR_ROUTE_NOT_FOUND, "no such path");
}

/* Sends a request that asks for the connection's end, and gives back all that comes. */
static char *ask(struct fixture *f, const char *method, const char *target, const char *fields,
                 const char *body)
{
    char request[1024];
    int len = snprintf(request, sizeof(request),
                       "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n%s", method, target,
                       fields, body);
    _cleanup_fd_ int fd = raw_connect(f);
    raw_send(f, fd, request, (size_t)len);
    return raw_read_all(f, fd);
}

struct answer_row {
    const char *method, *target, *fields, *body;
    const char *has[4]; /* what the answer has in it */
    const char *ends;   /* how it ends */
    const char *has_not;
};

static const struct answer_row answer_rows[] = {
    {"GET",
     "/query?a=b&k+%65y=v%20%2B+w",
     "",
     "",
     {"200 OK", "Content-Length: 5", "Date: ", "Server: cella"},
     "\r\n\r\nv + w",
     NULL},
    {"GET",
     "/query?k%20ey",
     "",
     "",
     {"200 OK"},
     "Content-Length: 0\r\nConnection: close\r\n\r\n",
     NULL},
    {"GET", "/query?key=1", "", "", {"200 OK"}, "(none)", NULL},
    {"GET", "/query?k+ey=%0", "", "", {"400 Bad Request", "INVALID_ARGUMENT"}, "}}", NULL},
    {"GET", "/query?k+ey=%00", "", "", {"400 Bad Request"}, "}}", NULL},
    {"GET",
     "/stream",
     "",
     "",
     {"Transfer-Encoding: chunked"},
     "\r\n\r\n3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n",
     "Content-Length"},
    {"HEAD", "/stream", "", "", {"Transfer-Encoding: chunked"}, "\r\n\r\n", "\nabc"},
    {"GET", "/length", "", "", {"Content-Length: 6"}, "\r\n\r\nabcdef", "chunked"},
    {"HEAD", "/length", "", "", {"Content-Length: 6"}, "\r\n\r\n", "\nabc"},
    {"GET", "/short", "", "", {"Content-Length: 6"}, "\r\n\r\nabc", NULL},
    {"GET",
     "/error",
     "",
     "",
     {"404 Not Found", "application/json", "X-Evil: aSet-Cookie: b\r\n"},
     "{\"error\":{\"code\":\"SANDBOX_NOT_FOUND\",\"message\":\"no \\\"sandbox\\\" \\\\ "
     "\\u0001\xc3\xa9\\ufffd\\ufffd\\ufffd\\ufffd\"}}",
     "\nSet-Cookie"},
    {"HEAD", "/error", "", "", {"404 Not Found"}, "\r\n\r\n", "{"},
    {"GET", "/late-error", "", "", {"200 OK"}, "3\r\nabc\r\n", "0\r\n\r\n"},
    {"POST", "/body", "Content-Length: 5\r\n", "hello", {"200 OK"}, "\r\n\r\nhello", NULL},
    {"POST",
     "/body",
     "Transfer-Encoding: chunked\r\n",
     "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
     {"200 OK"},
     "\r\n\r\nhello",
     NULL},
    {"POST",
     "/body",
     "Content-Length: 101\r\n",
     "hello",
     {"413 Content Too Large", "the body is larger than 100 bytes"},
     "}}",
     NULL},
    {"POST",
     "/body",
     "Transfer-Encoding: chunked\r\n",
     "65\r\n01234567890123456789012345678901234567890123456789012345678901234567890123456789"
     "012345678901234567890\r\n0\r\n\r\n",
     {"413 Content Too Large"},
     "}}",
     NULL},
    {"GET", "/twice", "", "", {"200 OK"}, "\r\n\r\nfirst", "second"},
    {"GET", "/accept", "Accept: application/octet-stream, */*\r\n", "", {"200"}, "accepts", NULL},
    {"GET", "/accept", "Accept: */*, application/octet-stream\r\n", "", {"200"}, "neither", NULL},
    {"GET",
     "/accept",
     "Content-Type: Application/octet-stream ; a=b\r\n",
     "",
     {"200"},
     "content",
     NULL},
    {"GET", "/accept", "Content-Type: application/octet-streams\r\n", "", {"200"}, "neither", NULL},
    {"GET", "/peer", "", "", {"200"}, "yes", NULL},
    {"DELETE", "/empty", "", "", {"204 No Content"}, "\r\n\r\n", "Content-Length"},
    {"GET", "/nothing", "", "", {"500 Internal Server Error", "INTERNAL"}, "}}", NULL},
    {"GET", "/elsewhere", "", "", {"404 Not Found", "ROUTE_NOT_FOUND"}, "}}", NULL},
};

static void check_answers(struct fixture *f)
{
    for (size_t i = 0; i < ARRAY_LEN(answer_rows); i++) {
        const struct answer_row *row = &answer_rows[i];
        char *got = ask(f, row->method, row->target, row->fields, row->body);
        size_t len = strlen(got), end = strlen(row->ends);
        for (size_t n = 0; n < ARRAY_LEN(row->has) && row->has[n] != NULL; n++)
            if (strstr(got, row->has[n]) == NULL)
                fail_msg("row %zu has no %s: %s", i, row->has[n], got);
        if (len < end || strcmp(got + len - end, row->ends) != 0)
            fail_msg("row %zu does not end in %s: %s", i, row->ends, got);
        if (row->has_not != NULL && strstr(got, row->has_not) != NULL)
            fail_msg("row %zu has %s: %s", i, row->has_not, got);
        free(got);
    }
}

static void answers_of_all_kinds(void **state)
{
    fixture_run(serve, NULL, check_answers, NULL);
}

static void check_http10(struct fixture *f)
{
    _cleanup_fd_ int fd = raw_connect(f);
    raw_sends(f, fd, "GET /stream HTTP/1.0\r\n\r\n");
    char *got = raw_read_all(f, fd);
    assert_null(strstr(got, "chunked"));
    assert_non_null(strstr(got, "Connection: close"));
    assert_non_null(strstr(got, "\r\n\r\nabcdefgh"));
    free(got);
}

/* Without framing, only a reset tells a broken answer from a whole one. */
static void check_http10_cut(struct fixture *f)
{
    struct error err = {0};
    char piece[4096];
    ssize_t n;
    _cleanup_fd_ int fd = raw_connect(f);
    raw_sends(f, fd, "GET /late-error HTTP/1.0\r\n\r\n");
    while ((n = net_read(f->loop, fd, piece, sizeof(piece), 5000, &err)) > 0)
        ;
    assert_int_equal(n, -1);
    assert_int_equal(err.sys, ECONNRESET);
}

static void http10_broken_answer_is_reset(void **state)
{
    fixture_run(serve, NULL, check_http10_cut, NULL);
}

static void http10_streams_to_the_end(void **state)
{
    fixture_run(serve, NULL, check_http10, NULL);
}

/* --- a second listener, on a unix socket --- */

static void check_unix(struct fixture *f)
{
    char dir[] = "/tmp/cella-http-XXXXXX";
    struct error err;
    int listen_fd;
    assert_non_null(mkdtemp(dir));
    snprintf(f->address, sizeof(f->address), "unix:%s/s", dir);
    assert_int_equal(net_listen(f->address, 8, &listen_fd, NULL, &err), 0);
    assert_int_equal(http_server_add(f->server, listen_fd, &err), 0);
    char *got = ask(f, "GET", "/peer", "", "");
    assert_non_null(strstr(got, "\r\n\r\nunix"));
    free(got);
    unlink(f->address + 5);
    rmdir(dir);
}

static void serves_unix_sockets(void **state)
{
    fixture_run(serve, NULL, check_unix, NULL);
}

/* --- keeping connections --- */

static void check_keep(struct fixture *f)
{
    _cleanup_fd_ int fd = raw_connect(f);
    for (int i = 0; i < 20; i++) {
        raw_sends(f, fd, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
        raw_expect(f, fd, "\r\n\r\nabc");
        raw_sends(f, fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        raw_expect(f, fd, "0\r\n\r\n");
        raw_sends(f, fd, "GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n");
        raw_expect(f, fd, "}}");
        raw_sends(f, fd, "HEAD /length HTTP/1.1\r\nHost: x\r\n\r\n");
        raw_expect(f, fd, "\r\n\r\n");
        /* a body that the handler does not read is read over */
        raw_sends(f, fd, "POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde");
        raw_expect(f, fd, "\r\n\r\nunread");
    }
}

static void connections_are_kept(void **state)
{
    fixture_run(serve, NULL, check_keep, NULL);
}

/* More than is worth reading over: the client is told, and the connection closed behind it. */
static void check_unread(struct fixture *f)
{
    static const char *const heads[] = {
        "POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
        "POST /unread HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nf4240\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        struct error err;
        char *filler = calloc(1, 1000000);
        _cleanup_fd_ int fd = raw_connect(f);
        raw_sends(f, fd, heads[i]);
        net_write(f->loop, fd, filler, 1000000, 5000, &err);
        char *got = raw_read_all(f, fd);
        assert_non_null(strstr(got, "200 OK"));
        assert_true(strstr(got, "Connection: close") != NULL || i == 1);
        free(got);
        free(filler);
    }
}

/* A client that sends on, and looks for the answer at the end only, finds it. */
static void check_sent_all_the_same(struct fixture *f)
{
    struct error err;
    char piece[1000] = {0};
    _cleanup_fd_ int fd = raw_connect(f);
    raw_sends(f, fd, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 40000000\r\n\r\n");
    for (int i = 0; i < 40; i++) { /* longer than silence is listened to */
        raw_send(f, fd, piece, sizeof(piece));
        assert_int_equal(co_sleep(f->loop, 100, &err), 0);
    }
    check_statuses(f, fd, "413 ");
}

static void answer_waits_for_the_end_of_the_body(void **state)
{
    fixture_run(serve, NULL, check_sent_all_the_same, NULL);
}

static void large_unread_body_ends_the_connection(void **state)
{
    fixture_run(serve, NULL, check_unread, NULL);
}

/* --- Expect --- */

static void check_continue(struct fixture *f)
{
    _cleanup_fd_ int fd = raw_connect(f);
    raw_sends(f, fd,
              "POST /body HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
              "Content-Length: 3\r\n\r\n");
    raw_expect(f, fd, "HTTP/1.1 100 Continue\r\n\r\n");
    raw_sends(f, fd, "abc");
    raw_expect(f, fd, "\r\n\r\nabc");
    /* refused before the body: no 100, and the connection ends, since the body may come or not */
    raw_sends(f, fd,
              "POST /body HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
              "Content-Length: 3000\r\n\r\n");
    char *got = raw_read_all(f, fd);
    assert_null(strstr(got, "100 Continue"));
    assert_non_null(strstr(got, "413 "));
    assert_non_null(strstr(got, "Connection: close"));
    free(got);
}

static void expect_continue(void **state)
{
    fixture_run(serve, NULL, check_continue, NULL);
}

/* --- time --- */

static void check_slow(struct fixture *f)
{
    struct meters *meters = meters_new(NULL);
    loop_set_meters(f->loop, meters);
    /* a header that does not end */
    int fd = raw_connect(f);
    raw_sends(f, fd, "GET / HTTP/1.1\r\nHost: x\r\n");
    check_statuses(f, fd, "408 ");
    close(fd);
    /* nor does one that trickles get more time */
    fd = raw_connect(f);
    struct error err;
    for (int i = 0; i < 1000; i++) {
        if (net_write(f->loop, fd, i == 0 ? "GET /" : "a", i == 0 ? 5 : 1, 1000, &err) != 0)
            break;
        assert_int_equal(co_sleep(f->loop, 5, &err), 0);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 0) > 0)
            break;
    }
    check_statuses(f, fd, "408 ");
    close(fd);
    assert_int_equal(meters->counters[METER_TIMEOUT_REQUEST], 2);
    assert_int_equal(meters->errors[ERROR_REQUEST_TIMEOUT], 2);
    /* a body that stops */
    fd = raw_connect(f);
    raw_sends(f, fd, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
    check_statuses(f, fd, "408 ");
    close(fd);
    /* nothing at all, before and after a request: closed without a word */
    fd = raw_connect(f);
    check_statuses(f, fd, "");
    close(fd);
    fd = raw_connect(f);
    raw_sends(f, fd, "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
    check_statuses(f, fd, "200 ");
    close(fd);
    loop_set_meters(f->loop, NULL);
    meters_free(meters);
}

static void slow_clients(void **state)
{
    const struct http_limits limits = {
        .header_timeout_ms = 100, .body_timeout_ms = 100, .idle_timeout_ms = 300};
    fixture_run(serve, &limits, check_slow, NULL);
}

/* --- large bodies --- */

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 31 + (i >> 10));
}

static size_t resident(void)
{
    unsigned long pages = 0, total = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &total, &pages), 2);
    fclose(file);
    return pages * 4096;
}

static size_t most_resident;

static int sink(struct http_exchange *x, struct error *err)
{
    unsigned char *piece = arena_alloc(http_arena(x), PIECE);
    size_t total = 0;
    for (ssize_t n; (n = http_body_read(x, piece, PIECE, err)) != 0;) {
        if (n < 0)
            return -1;
        for (ssize_t i = 0; i < n; i++)
            assert_true(piece[i] == pattern(total + (size_t)i));
        total += (size_t)n;
        size_t now = total % (1 << 20) < PIECE ? resident() : 0;
        most_resident = now > most_resident ? now : most_resident;
    }
    return reply_text(x, arena_printf(http_arena(x), "%zu", total), err);
}

static int source(struct http_exchange *x, int64_t length, struct error *err)
{
    unsigned char *piece = arena_alloc(http_arena(x), PIECE);
    if (http_reply_start(x, 200, "application/octet-stream", length, err) != 0)
        return -1;
    for (size_t at = 0; at < BIG; at += PIECE) {
        for (size_t i = 0; i < PIECE; i++)
            piece[i] = pattern(at + i);
        if (http_reply_write(x, piece, PIECE, err) != 0)
            return -1;
        size_t now = at % (1 << 20) == 0 ? resident() : 0;
        most_resident = now > most_resident ? now : most_resident;
    }
    return http_reply_end(x, err);
}

struct splicer {
    struct loop *loop;
    int fd;
    uint64_t len;
    bool write;
    bool done;
};

/* The other end of a socket that a body is pumped into or out of. */
static void splicer_main(void *arg)
{
    struct splicer *s = arg;
    struct error err;
    unsigned char *piece = malloc(PIECE);
    for (size_t at = 0; at < s->len; at += PIECE) {
        for (size_t i = 0; s->write && i < PIECE; i++)
            piece[i] = pattern(at + i);
        if (s->write) {
            assert_int_equal(net_write(s->loop, s->fd, piece, PIECE, 5000, &err), 0);
            continue;
        }
        assert_int_equal(net_read_whole(s->loop, s->fd, piece, PIECE, 5000, &err), 0);
        for (size_t i = 0; i < PIECE; i++)
            assert_true(piece[i] == pattern(at + i));
    }
    free(piece);
    s->done = true;
}

static int pump(struct http_exchange *x, bool down, int64_t length, struct error *err)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    struct splicer s = {.loop = http_loop(x), .fd = fds[1], .len = BIG, .write = down};
    assert_int_equal(co_spawn(s.loop, splicer_main, &s, NULL, err), 0);
    int rc = down ? http_reply_start(x, 200, NULL, length, err) : 0;
    uint64_t moved = 1;
    for (size_t at = 0; rc == 0 && down && at < BIG; at += 256 * 1024)
        rc = http_reply_pump(x, fds[0], 256 * 1024, err);
    uint64_t total = 0;
    while (rc == 0 && !down && moved > 0) {
        rc = http_body_pump(x, fds[0], 256 * 1024 + 1, &moved, err);
        total += moved;
    }
    while (rc == 0 && !s.done)
        assert_int_equal(co_sleep(s.loop, 1, err), 0);
    close(fds[0]);
    close(fds[1]);
    if (rc != 0)
        return rc;
    if (down)
        return 0;
    assert_int_equal(total, BIG);
    return reply_text(x, arena_printf(http_arena(x), "%llu", (unsigned long long)total), err);
}

static int serve_big(struct http_exchange *x, void *ctx, struct error *err)
{
    const char *path = http_request(x)->path;
    if (strcmp(path, "/sink") == 0)
        return sink(x, err);
    if (strcmp(path, "/source") == 0)
        return source(x, BIG, err);
    if (strcmp(path, "/source-chunked") == 0)
        return source(x, -1, err);
    if (strcmp(path, "/pump-down") == 0)
        return pump(x, true, BIG, err);
    if (strcmp(path, "/pump-down-chunked") == 0)
        return pump(x, true, -1, err);
    return pump(x, false, 0, err);
}

static void upload(struct fixture *f, const char *path, bool chunked)
{
    char head[256], *piece = malloc(PIECE + 32);
    _cleanup_fd_ int fd = raw_connect(f);
    if (chunked)
        snprintf(head, sizeof(head),
                 "PUT %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", path);
    else
        snprintf(head, sizeof(head), "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
                 path, BIG);
    raw_sends(f, fd, head);
    for (size_t at = 0; at < BIG; at += PIECE) {
        size_t n = chunked ? (size_t)snprintf(piece, 32, "%x\r\n", PIECE) : 0;
        for (size_t i = 0; i < PIECE; i++)
            piece[n + i] = (char)pattern(at + i);
        n += PIECE;
        if (chunked) {
            memcpy(piece + n, "\r\n", 2);
            n += 2;
        }
        raw_send(f, fd, piece, n);
    }
    if (chunked)
        raw_sends(f, fd, "0\r\n\r\n");
    raw_expect(f, fd, "\r\n\r\n67108864");
    free(piece);
}

/* Only counts the bytes, with the head and the framing of chunks. */
static size_t download(struct fixture *f, const char *path)
{
    char request[256];
    struct error err = {0};
    char *piece = malloc(PIECE);
    _cleanup_fd_ int fd = raw_connect(f);
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
             path);
    raw_sends(f, fd, request);
    size_t total = 0;
    ssize_t n;
    while ((n = net_read(f->loop, fd, piece, PIECE, 5000, &err)) > 0)
        total += (size_t)n;
    assert_int_equal(n, 0);
    free(piece);
    return total;
}

static void check_big(struct fixture *f)
{
    size_t before = resident();
    most_resident = 0;
    upload(f, "/sink", false);
    upload(f, "/sink", true);
    assert_in_range(download(f, "/source"), BIG + 100, BIG + 300);
    assert_in_range(download(f, "/source-chunked"), BIG + 100, BIG + 100000);
#ifndef FIBER_ASAN
    assert_true(most_resident < before + (8 << 20));
#else
    (void)before;
#endif
    upload(f, "/pump-up", false);
    upload(f, "/pump-up", true);
    assert_in_range(download(f, "/pump-down"), BIG + 100, BIG + 300);
    assert_in_range(download(f, "/pump-down-chunked"), BIG + 100, BIG + 100000);
}

static void large_bodies_stream(void **state)
{
    fixture_run(serve_big, NULL, check_big, NULL);
}

/* A handler that does not read holds its client back. */
static int serve_stuck(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    while (f->count == 0)
        if (co_sleep(f->loop, 1, err) != 0)
            return -1;
    struct slice body;
    if (http_body_all(x, BIG, &body, err) != 0)
        return -1;
    return reply_text(x, "done", err);
}

static void check_pressure(struct fixture *f)
{
    struct error err;
    char *data = calloc(1, BIG);
    _cleanup_fd_ int fd = raw_connect(f);
    char head[128];
    snprintf(head, sizeof(head), "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", BIG);
    raw_sends(f, fd, head);
    size_t sent = 0;
    ssize_t n;
    int quiet = 0;
    while (sent < BIG && quiet < 20) { /* until the kernel's buffers are full */
        n = send(fd, data + sent, BIG - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        quiet = n > 0 ? 0 : quiet + 1;
        sent += n > 0 ? (size_t)n : 0;
        assert_int_equal(co_sleep(f->loop, 1, &err), 0);
    }
    assert_true(sent < BIG / 2);
    f->count = 1;
    raw_send(f, fd, data + sent, BIG - sent);
    raw_expect(f, fd, "\r\n\r\ndone");
    free(data);
}

static void unread_body_holds_the_client_back(void **state)
{
    fixture_run(serve_stuck, NULL, check_pressure, NULL);
}

/* --- clients that vanish, servers that stop --- */

struct watched {
    int started;
    int cancelled;
    int finished;
    int client;
};

static int serve_waiting(struct http_exchange *x, void *ctx, struct error *err)
{
    struct watched *w = ((struct fixture *)ctx)->data;
    w->started++;
    int ms = atoi(http_request(x)->path + 1);
    if (co_sleep(http_loop(x), ms, err) != 0) {
        w->cancelled += err->code == ERROR_CANCELLED;
        return -1;
    }
    w->finished++;
    return reply_text(x, "slept", err);
}

static void wait_until(struct fixture *f, const int *value, int want)
{
    struct error err;
    for (int i = 0; i < 5000 && *value != want; i++)
        assert_int_equal(co_sleep(f->loop, 1, &err), 0);
    assert_int_equal(*value, want);
}

static void check_vanish(struct fixture *f)
{
    struct watched *w = f->data;
    int fd = raw_connect(f);
    raw_sends(f, fd, "GET /1000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until(f, &w->started, 1);
    close(fd);
    wait_until(f, &w->cancelled, 1);
    /* with unread bytes of a next request or a body behind it */
    fd = raw_connect(f);
    raw_sends(f, fd, "PUT /1000000 HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
    wait_until(f, &w->started, 2);
    raw_sends(f, fd, "more");
    close(fd);
    wait_until(f, &w->cancelled, 2);
    /* a connection reset */
    fd = raw_connect(f);
    raw_sends(f, fd, "GET /1000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until(f, &w->started, 3);
    struct linger linger = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(fd);
    wait_until(f, &w->cancelled, 3);
    /* one that only sends its next request early is not gone */
    fd = raw_connect(f);
    raw_sends(f, fd, "GET /20 HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until(f, &w->started, 4);
    raw_sends(f, fd, "GET /1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    check_statuses(f, fd, "200 200 ");
    close(fd);
}

static void vanished_client_cancels_the_handler(void **state)
{
    struct watched w = {0};
    fixture_run(serve_waiting, NULL, check_vanish, &w);
    assert_int_equal(w.cancelled, 3);
}

/* The client hangs up under the handler's hands: a write is what finds out, not the loop. */
static int serve_to_nobody(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    struct watched *w = f->data;
    struct linger linger = {.l_onoff = 1}; /* a reset: the first write meets it */
    int rc = http_reply_start(x, 200, NULL, -1, err);
    setsockopt(w->client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(w->client);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = http_reply_write(x, "on", 2, err);
    assert_int_equal(rc, -1);
    assert_int_equal(err->code, ERROR_CANCELLED);
    assert_int_equal(http_reply_write(x, "on", 2, err), -1);
    assert_int_equal(err->code, ERROR_CANCELLED);
    assert_false(http_can_tell(x, err));
    w->finished++;
    return -1;
}

static void check_nobody(struct fixture *f)
{
    struct watched *w = f->data;
    w->client = raw_connect(f);
    raw_sends(f, w->client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until(f, &w->finished, 1);
}

static void writing_to_who_has_gone_is_no_failure(void **state)
{
    struct watched w = {0};
    fixture_run(serve_to_nobody, NULL, check_nobody, &w);
}

static int serve_endless(struct http_exchange *x, void *ctx, struct error *err)
{
    struct watched *w = ((struct fixture *)ctx)->data;
    char *piece = arena_alloc(http_arena(x), PIECE);
    w->started++;
    int rc = http_reply_start(x, 200, NULL, -1, err);
    while (rc == 0)
        rc = http_reply_write(x, piece, PIECE, err);
    w->finished++;
    return -1;
}

static void check_deaf(struct fixture *f)
{
    struct watched *w = f->data;
    int fd = raw_connect(f);
    raw_sends(f, fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until(f, &w->started, 1);
    wait_until(f, &w->finished, 1); /* does not read: the time-out */
    close(fd);
    fd = raw_connect(f);
    raw_sends(f, fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    raw_expect(f, fd, "200 OK");
    close(fd);
    wait_until(f, &w->finished, 2);
}

static void client_that_does_not_read(void **state)
{
    struct watched w = {0};
    const struct http_limits limits = {.body_timeout_ms = 50};
    fixture_run(serve_endless, &limits, check_deaf, &w);
}

static int the_fds[3];

static void check_shutdown(struct fixture *f)
{
    struct watched *w = f->data;
    the_fds[0] = raw_connect(f); /* idle */
    the_fds[1] = raw_connect(f); /* ends in time */
    the_fds[2] = raw_connect(f); /* does not */
    raw_sends(f, the_fds[1], "GET /10 HTTP/1.1\r\nHost: x\r\n\r\n");
    raw_sends(f, the_fds[2], "GET /1000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until(f, &w->started, 2);
    http_server_shutdown(f->server, 500);
    assert_int_equal(w->finished, 1);
    assert_int_equal(w->cancelled, 1);
    check_statuses(f, the_fds[0], "");
    check_statuses(f, the_fds[1], "200 ");
    check_statuses(f, the_fds[2], "503 ");
    for (size_t i = 0; i < ARRAY_LEN(the_fds); i++)
        close(the_fds[i]);
    struct error err;
    int fd;
    assert_int_equal(net_connect(f->loop, f->address, 100, &fd, &err), -1);
}

static void shutdown_lets_requests_end(void **state)
{
    struct watched w = {0};
    fixture_run(serve_waiting, NULL, check_shutdown, &w);
}

/* The end of the server is not the end of the answer: closed with bytes of a body in it that nobody
 * read, the socket would be reset, and the answer may be lost with that. */
static void check_half_a_body(struct fixture *f)
{
    struct watched *w = f->data;
    struct error err = {0};
    char got[4096] = "";
    ssize_t n;
    size_t len = 0;
    _cleanup_fd_ int fd = raw_connect(f);
    raw_sends(f, fd, "PUT /1000000 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc");
    wait_until(f, &w->started, 1);
    raw_sends(f, fd, "half of it"); /* stays in the socket */
    http_server_shutdown(f->server, 0);
    assert_int_equal(w->cancelled, 1);
    while ((n = net_read(f->loop, fd, got + len, sizeof(got) - 1 - len, 10000, &err)) > 0)
        len += (size_t)n;
    if (n < 0)
        fail_msg("%s after: %s", err.message, got);
    assert_non_null(strstr(got, "HTTP/1.1 503 "));
}

static void shutdown_with_half_a_body(void **state)
{
    struct watched w = {0};
    fixture_run(serve_waiting, NULL, check_half_a_body, &w);
}

enum { BURST = 4 << 20 }; /* after so much, others have their turn */

/* Up to a piece short of that; and the last one when it is told to end. */
static int serve_last_words(struct http_exchange *x, void *ctx, struct error *err)
{
    struct watched *w = ((struct fixture *)ctx)->data;
    char *piece = arena_alloc(http_arena(x), PIECE);
    struct error why;
    if (http_reply_start(x, 200, NULL, -1, err) != 0)
        return -1;
    for (int i = 0; i + 1 < BURST / PIECE; i++)
        if (http_reply_write(x, piece, PIECE, err) != 0 || co_sleep(http_loop(x), 1, err) != 0)
            return -1;
    w->started++;
    assert_int_equal(co_sleep(http_loop(x), 1000000, &why), -1);
    w->cancelled++;
    memset(piece, 'z', PIECE);
    return http_reply_write(x, piece, PIECE, err) != 0 ? -1 : http_reply_end(x, err);
}

static void check_last_words(struct fixture *f)
{
    struct watched *w = f->data;
    struct error err = {0};
    char piece[16384] = "", tail[8] = "";
    ssize_t n = 0;
    _cleanup_fd_ int fd = raw_connect(f);
    raw_sends(f, fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    while (w->started == 0)
        if ((n = net_read(f->loop, fd, piece, sizeof(piece), 1, &err)) < 0)
            assert_int_equal(err.code, ERROR_TIMEOUT);
    http_server_shutdown(f->server, 0);
    assert_int_equal(w->cancelled, 1);
    while ((n = net_read(f->loop, fd, piece, sizeof(piece), 10000, &err)) > 0)
        memcpy(tail, piece + (n < 7 ? 0 : n - 7), 7);
    if (n < 0)
        fail_msg("%s", err.message);
    assert_string_equal(tail, "\r\n0\r\n\r\n");
}

static void last_words_of_a_stream(void **state)
{
    struct watched w = {0};
    fixture_run(serve_last_words, NULL, check_last_words, &w);
}

/* --- limits on connections --- */

static void check_crowd(struct fixture *f)
{
    struct watched *w = f->data;
    int fds[3];
    for (int i = 0; i < 2; i++) {
        fds[i] = raw_connect(f);
        raw_sends(f, fds[i], "GET /1000000 HTTP/1.1\r\nHost: x\r\n\r\n");
        wait_until(f, &w->started, i + 1);
    }
    fds[2] = raw_connect(f); /* the kernel accepts it */
    raw_sends(f, fds[2], "GET /10 HTTP/1.1\r\nHost: x\r\n\r\n");
    struct error err;
    char byte;
    assert_int_equal(net_read(f->loop, fds[2], &byte, 1, 30, &err), -1);
    assert_int_equal(err.code, ERROR_TIMEOUT);
    close(fds[0]); /* makes room */
    raw_expect(f, fds[2], "200 OK");
    close(fds[1]);
    close(fds[2]);
}

static void connections_are_limited(void **state)
{
    struct watched w = {0};
    const struct http_limits limits = {.connections_max = 2};
    fixture_run(serve_waiting, &limits, check_crowd, &w);
}

/* Who holds connections without a request makes room for those who have one. */
static void check_idlers(struct fixture *f)
{
    int fds[3];
    for (size_t i = 0; i < 2; i++) {
        fds[i] = raw_connect(f);
        raw_sends(f, fds[i], "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
        raw_expect(f, fds[i], "yes");
        raw_sends(f, fds[i], "GET /peer HTTP/1.1\r\nHo");
    }
    fds[2] = raw_connect(f);
    raw_sends(f, fds[2], "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
    raw_expect(f, fds[2], "yes");
    check_statuses(f, fds[0], ""); /* the oldest went */
    raw_sends(f, fds[1], "st: x\r\n\r\n");
    raw_expect(f, fds[1], "yes");
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static void idle_connections_make_room(void **state)
{
    const struct http_limits limits = {.connections_max = 2};
    fixture_run(serve, &limits, check_idlers, NULL);
}

/* It goes by when each had its last request, not by when it came: the first one is used again and
 * again, and those that are not go before it, in turn. */
static void check_turns(struct fixture *f)
{
    enum { KEPT = 3, NEW = 6 };
    int fds[KEPT + NEW];
    for (size_t i = 0; i < KEPT; i++) {
        fds[i] = raw_connect(f);
        raw_sends(f, fds[i], "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
        raw_expect(f, fds[i], "yes");
    }
    for (size_t i = KEPT; i < KEPT + NEW; i++) {
        raw_sends(f, fds[0], "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
        raw_expect(f, fds[0], "yes");
        fds[i] = raw_connect(f);
        raw_sends(f, fds[i], "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
        raw_expect(f, fds[i], "yes");
        check_statuses(f, fds[i - KEPT + 1], ""); /* the one that was longest without */
    }
    raw_sends(f, fds[0], "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
    raw_expect(f, fds[0], "yes");
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static void who_is_used_stays(void **state)
{
    const struct http_limits limits = {.connections_max = 3};
    fixture_run(serve, &limits, check_turns, NULL);
}

/* --- bodies that come byte by byte --- */

static int serve_whole(struct http_exchange *x, void *ctx, struct error *err)
{
    struct slice body;
    if (strcmp(http_request(x)->path, "/refused") == 0)
        return error_set(err, ERROR_FORBIDDEN, "not you");
    http_vouch(x);
    if (http_body_all(x, 1000, &body, err) < 0)
        return -1;
    return http_reply(x, 200, "text/plain", "whole", 5, err);
}

/* Each byte comes in time, and all of them never would. */
static void drip(struct fixture *f, const char *head, const char *piece, const char *wanted)
{
    struct error err;
    char answer[512];
    size_t got = 0;
    int fd = raw_connect(f);
    raw_sends(f, fd, head);
    for (ssize_t n = -1; n != 0;) {
        net_write(f->loop, fd, piece, strlen(piece), 1000, NULL);
        n = net_read(f->loop, fd, answer + got, sizeof(answer) - 1 - got, 20, &err);
        if (n < 0 && err.code != ERROR_TIMEOUT)
            break;
        got += n > 0 ? (size_t)n : 0;
    }
    answer[got] = '\0';
    assert_non_null(strstr(answer, wanted));
    close(fd);
}

static void check_drips(struct fixture *f)
{
    drip(f, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n", "x", " 408 ");
    drip(f, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n",
         " 408 ");
    drip(f, "POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n", "x", " 403 ");
}

static void bodies_keep_a_pace(void **state)
{
    const struct http_limits limits = {.body_slow_ms = 100};
    fixture_run(serve_whole, &limits, check_drips, NULL);
}

/* Nobody could be let in while all had a request; when none has, somebody can. */
static void check_all_come_to_rest(struct fixture *f)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
                               "Expect: 100-continue\r\n\r\n";
    int fds[3];
    struct error err;
    char byte;
    for (size_t i = 0; i < 2; i++) {
        fds[i] = raw_connect(f);
        raw_sends(f, fds[i], head);
        raw_expect(f, fds[i], "100 Continue\r\n\r\n");
        raw_sends(f, fds[i], "x");
    }
    fds[2] = raw_connect(f);
    raw_sends(f, fds[2], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(net_read(f->loop, fds[2], &byte, 1, 30, &err), -1);
    assert_int_equal(err.code, ERROR_TIMEOUT);
    for (size_t i = 0; i < 2; i++) {
        raw_sends(f, fds[i], "x");
        raw_expect(f, fds[i], "whole");
    }
    raw_expect(f, fds[2], "whole");
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static void rest_makes_room(void **state)
{
    const struct http_limits limits = {.connections_max = 2};
    fixture_run(serve_whole, &limits, check_all_come_to_rest, NULL);
}

/* --- strangers who are waited for --- */

static int serve_stranger(struct http_exchange *x, void *ctx, struct error *err)
{
    struct slice body;
    const char *path = http_request(x)->path;
    if (strncmp(path, "/known", 6) == 0) {
        http_vouch(x);
        path += 6;
    }
    if (strcmp(path, "/refused") == 0)
        return error_set(err, ERROR_UNAUTHORIZED, "not you");
    if (strcmp(path, "/large") == 0)
        return source(x, BIG, err);
    if (strcmp(path, "/whole") == 0 && http_body_all(x, 1000, &body, err) < 0)
        return -1;
    return reply_text(x, "served", err);
}

#define HALF(path) "POST " path " HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\nx"
#define CONTINUED(path)                                                                            \
    "POST " path " HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n"                                 \
    "Expect: 100-continue\r\n\r\n"

static const struct stall {
    const char *request, *until; /* what is sent, and what comes before it is waited for more */
    bool stays;
} stalls[] = {
    {HALF("/refused"), "}}", false},
    {HALF("/unread"), "served", false},
    {HALF("/known/unread"), "served", false}, /* it was answered: it has nothing to lose */
    {CONTINUED("/whole"), "100 Continue\r\n\r\n", false},
    {"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", false},
    {CONTINUED("/known/whole"), "100 Continue\r\n\r\n", true},
    {"GET /known/large HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", true},
};

/* All places are held by clients that are slow: who comes next is served, in the place of the one
 * that was waited for the longest, unless it is known who that is. */
static void check_stalls(struct fixture *f)
{
    for (size_t i = 0; i < ARRAY_LEN(stalls); i++) {
        struct error err;
        char byte;
        int fds[3];
        for (size_t n = 0; n < 2; n++) {
            fds[n] = raw_connect(f);
            raw_sends(f, fds[n], stalls[i].request);
            raw_expect(f, fds[n], stalls[i].until);
        }
        fds[2] = raw_connect(f);
        raw_sends(f, fds[2], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        if (stalls[i].stays) {
            assert_int_equal(net_read(f->loop, fds[2], &byte, 1, 30, &err), -1);
            assert_int_equal(err.code, ERROR_TIMEOUT);
        } else {
            raw_expect(f, fds[2], "served");
            assert_int_equal(http_server_load(f->server).connections, 2);
        }
        for (size_t n = 0; n < ARRAY_LEN(fds); n++)
            close(fds[n]);
        while (http_server_load(f->server).connections > 0)
            assert_int_equal(co_sleep(f->loop, 1, &err), 0);
    }
}

static void slow_strangers_make_room(void **state)
{
    const struct http_limits limits = {.connections_max = 2};
    fixture_run(serve_stranger, &limits, check_stalls, NULL);
}

/* Many at once, again and again: there are never more than there may be, and one besides. */
static void check_stampede(struct fixture *f)
{
    enum { MANY = 200, PLACES = 4 };
    int fds[MANY];
    for (size_t i = 0; i < MANY; i++) {
        fds[i] = raw_connect(f);
        raw_sends(f, fds[i], HALF("/whole"));
        assert_in_range(http_server_load(f->server).connections, 0, PLACES + 1);
    }
    char *got = ask(f, "GET", "/", "", "");
    assert_non_null(strstr(got, "served"));
    free(got);
    for (size_t i = 0; i < MANY; i++)
        close(fds[i]);
}

static void a_stampede_of_slow_strangers(void **state)
{
    const struct http_limits limits = {.connections_max = 4};
    fixture_run(serve_stranger, &limits, check_stampede, NULL);
}

/* The rest of a body that nobody wants is not waited for as long as one that somebody reads. */
static void check_drained(struct fixture *f)
{
    int64_t begun = loop_now(f->loop);
    int fd = raw_connect(f);
    raw_sends(f, fd, HALF("/refused"));
    check_statuses(f, fd, "401 ");
    assert_true(loop_now(f->loop) - begun < 10 * 1000);
    close(fd);
}

static void rest_of_a_body_is_not_waited_for_long(void **state)
{
    fixture_run(serve_stranger, NULL, check_drained, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_of_all_kinds),
        cmocka_unit_test(http10_streams_to_the_end),
        cmocka_unit_test(http10_broken_answer_is_reset),
        cmocka_unit_test(serves_unix_sockets),
        cmocka_unit_test(connections_are_kept),
        cmocka_unit_test(large_unread_body_ends_the_connection),
        cmocka_unit_test(answer_waits_for_the_end_of_the_body),
        cmocka_unit_test(expect_continue),
        cmocka_unit_test(slow_clients),
        cmocka_unit_test(large_bodies_stream),
        cmocka_unit_test(unread_body_holds_the_client_back),
        cmocka_unit_test(vanished_client_cancels_the_handler),
        cmocka_unit_test(writing_to_who_has_gone_is_no_failure),
        cmocka_unit_test(client_that_does_not_read),
        cmocka_unit_test(shutdown_lets_requests_end),
        cmocka_unit_test(shutdown_with_half_a_body),
        cmocka_unit_test(last_words_of_a_stream),
        cmocka_unit_test(connections_are_limited),
        cmocka_unit_test(idle_connections_make_room),
        cmocka_unit_test(who_is_used_stays),
        cmocka_unit_test(bodies_keep_a_pace),
        cmocka_unit_test(rest_makes_room),
        cmocka_unit_test(slow_strangers_make_room),
        cmocka_unit_test(a_stampede_of_slow_strangers),
        cmocka_unit_test(rest_of_a_body_is_not_waited_for_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
