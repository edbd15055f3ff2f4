/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests through inject_serve() to a server that speaks real TLS, with a certificate of a world's
 * own authority. The server writes down what it was sent, and answers by the path.
 */

#include "egress/inject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "auth/authority.h"
#include "auth/seal.h"
#include "base/cleanup.h"
#include "loop/co.h"
#include "loop/net.h"
#include "loop/task.h"

#define HOST   "api.world.example"
#define SECRET "sk-very-secret-0123456789"
#define VALUE  "Bearer " SECRET

enum { WAIT_MS = 20 * 1000, TEXT_MAX = 256 * 1024 };

struct fixture {
    struct loop *loop;
    struct ca *world;          /* signs for the server */
    struct tls_roots *roots;   /* believe it */
    struct buf sandbox_ca;     /* PEM of the sandbox's own */
    struct inject *inject;     /* without an authority, and … */
    struct inject *inject_tls; /* … with one */
    char roots_file[64], sandbox_file[64];
    int listen_fd;
    char address[64];
    const char *server_name; /* that the server has a certificate for */
    struct buf seen;         /* by the server: all requests, heads and bodies */
    int connections;
    bool go_on, go_on_again; /* the server may go on */
    void (*body)(struct fixture *f);
};

/* --- the world's server --- */

static void answer(struct tls *tls, const char *text)
{
    struct error err;
    tls_write(tls, text, strlen(text), WAIT_MS, &err);
}

static void wait_until(struct fixture *f, const bool *flag)
{
    struct error err;
    while (!*flag && co_sleep(f->loop, 5, &err) == 0) {
    }
}

/* One request; false: hang up. */
static bool serve_one(struct fixture *f, struct tls *tls)
{
    _cleanup_buf_ struct buf in = BUF_INIT(TEXT_MAX), out = BUF_INIT(TEXT_MAX);
    struct error err;
    char piece[4096];
    const char *end = NULL;
    while (end == NULL) {
        ssize_t n = tls_read(tls, piece, sizeof(piece), WAIT_MS, &err);
        if (n <= 0)
            return false;
        buf_add(&in, piece, (size_t)n);
        end = strstr(in.data, "\r\n\r\n");
        if (end != NULL && strstr(in.data, "chunked\r\n") != NULL)
            end = strstr(end + 4, "0\r\n\r\n");
        const char *length = strstr(in.data, "Content-Length: ");
        if (end != NULL && length != NULL &&
            in.len < (size_t)(end + 4 - in.data) + strtoul(length + 16, NULL, 10))
            end = NULL;
    }
    buf_add(&f->seen, in.data, in.len);
    if (strncmp(in.data, "GET /echo ", 10) == 0) {
        buf_addf(&out, "HTTP/1.1 200 Fine\r\nContent-Length: %zu\r\nX-Echo: %s\r\n\r\n", in.len,
                 strstr(in.data, SECRET) != NULL ? VALUE : "none");
        buf_add(&out, in.data, in.len);
        answer(tls, out.data);
    } else if (strncmp(in.data, "GET /chunked ", 13) == 0) {
        answer(tls, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
        answer(tls, "c\r\n sk-very-sec\r\n12\r\nret-0123456789 end\r\n0\r\n\r\n");
    } else if (strncmp(in.data, "GET /redirect ", 14) == 0)
        answer(tls, "HTTP/1.1 302 Found\r\nLocation: https://" HOST "/next\r\n"
                    "Strict-Transport-Security: max-age=1\r\nContent-Length: 0\r\n\r\n");
    else if (strncmp(in.data, "GET /away ", 10) == 0)
        answer(tls, "HTTP/1.1 302 Found\r\nLocation: https://other.example/?t=1\r\n"
                    "Content-Length: 0\r\n\r\n");
    else if (strncmp(in.data, "GET /reason ", 12) == 0)
        answer(tls, "HTTP/1.1 200 " SECRET " it was\r\nContent-Length: 2\r\n\r\nok");
    else if (strncmp(in.data, "GET /packed ", 12) == 0)
        answer(tls, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\npacked");
    else if (strncmp(in.data, "HEAD /packed ", 13) == 0)
        answer(tls, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\n");
    else if (strncmp(in.data, "GET /part ", 10) == 0)
        answer(tls, "HTTP/1.1 206 Partial Content\r\nContent-Length: 15\r\n"
                    "Content-Range: bytes 0-14/26\r\n\r\nsk-very-secret-");
    else if (strncmp(in.data, "GET /events ", 12) == 0) {
        answer(tls, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "b\r\ndata: one\n\n\r\n");
        wait_until(f, &f->go_on);
        answer(tls, "4\r\ntail\r\n");
        wait_until(f, &f->go_on_again);
        answer(tls, "19\r\n" SECRET "\r\n0\r\n\r\n");
    } else if (strncmp(in.data, "GET /ends ", 10) == 0) {
        answer(tls, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
        return false;
    } else if (strncmp(in.data, "GET /socket ", 12) == 0) {
        answer(tls, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Extensions: permessage-deflate\r\n"
                    "Upgrade: websocket\r\n\r\nwelcome");
        ssize_t n = tls_read(tls, piece, sizeof(piece), WAIT_MS, &err);
        if (n > 0)
            tls_write(tls, piece, (size_t)n, WAIT_MS, &err);
        return false;
    } else
        answer(tls, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    return true;
}

struct served {
    struct fixture *f;
    int fd;
};

static void serve_connection(void *arg)
{
    struct served *served = arg;
    struct fixture *f = served->f;
    _cleanup_fd_ int fd = served->fd;
    struct tls *tls = NULL;
    struct error err;
    free(served);
    if (tls_accept(f->loop, fd, (struct slice){"", 0}, f->world, f->server_name, WAIT_MS, &tls,
                   &err) < 0)
        return;
    while (serve_one(f, tls)) {
    }
    tls_end(tls, WAIT_MS, &err);
    tls_free(tls);
}

static void accept_all(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    for (;;) {
        struct served *served = calloc(1, sizeof(*served));
        served->f = f;
        if (net_accept(f->loop, f->listen_fd, &served->fd, &err) < 0) {
            free(served);
            return;
        }
        f->connections++;
        assert_int_equal(co_spawn(f->loop, serve_connection, served, NULL, &err), 0);
    }
}

/* --- a sandbox's connection --- */

static int dial(void *ctx, int *ret_fd, struct error *err)
{
    struct fixture *f = ctx;
    return net_connect(f->loop, f->address, WAIT_MS, ret_fd, err);
}

struct talk {
    struct fixture *f;
    int inside, outside; /* the two ends */
    struct inject_session session;
    uint64_t to, from;
    int result;
    struct error err;
    struct task task;
};

static void talk_serve(void *arg)
{
    struct talk *t = arg;
    t->result = inject_serve(&t->session, &t->err);
    shutdown(t->outside, SHUT_RDWR);
}

static void talk_begin(struct talk *t, struct fixture *f, const char *host, bool tls)
{
    int fds[2];
    struct error err;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *t = (struct talk){.f = f, .inside = fds[0], .outside = fds[1]};
    t->session = (struct inject_session){
        .loop = f->loop,
        .inject = tls ? f->inject_tls : f->inject,
        .host = host,
        .fd = fds[1],
        .tls = tls,
        .upgrades = strcmp(host, HOST) == 0,
        .roots = f->roots,
        .dial = dial,
        .ctx = f,
        .to_sandbox = &t->to,
        .from_sandbox = &t->from,
    };
    assert_int_equal(task_start(f->loop, &t->task, talk_serve, t, &err), 0);
}

static void talk_end(struct talk *t)
{
    close(t->inside);
    task_join(&t->task);
    close(t->outside);
    if (t->result < 0)
        assert_null(strstr(t->err.message, "very-secret"));
}

static void say(struct talk *t, const char *text)
{
    struct error err;
    assert_int_equal(net_write(t->f->loop, t->inside, text, strlen(text), WAIT_MS, &err), 0);
}

/* Reads until the text was seen, or (NULL) to the end. */
static void hear(struct talk *t, struct buf *out, const char *text)
{
    struct error err;
    char piece[4096];
    while (text == NULL || strstr(out->data, text) == NULL) {
        ssize_t n = net_read(t->f->loop, t->inside, piece, sizeof(piece), WAIT_MS, &err);
        if (n <= 0 && text == NULL)
            return;
        if (n <= 0)
            fail_msg("\"%s\" did not come, but: %s", text, out->data);
        buf_add(out, piece, (size_t)n);
    }
}

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL)                                                        \
            fail_msg("\"%s\" is not in: %s", (part), (text));                                      \
    } while (0)
#define assert_has_not(text, part)                                                                 \
    do {                                                                                           \
        if (strstr((text), (part)) != NULL)                                                        \
            fail_msg("\"%s\" is in: %s", (part), (text));                                          \
    } while (0)

/* One connection: says, and returns all that came back. */
static void exchange(struct fixture *f, const char *request, struct buf *out, struct talk *t)
{
    talk_begin(t, f, HOST, false);
    say(t, request);
    hear(t, out, NULL);
    talk_end(t);
}

/* --- tests --- */

static void body_adds_the_header(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    exchange(f,
             "GET /echo HTTP/1.1\r\nHost: API.world.example.\r\nauthorization: mine\r\n"
             "AUTHORIZATION: mine too\r\nAccept-Encoding: gzip\r\nX-Kept: 1\r\n"
             "Connection: close, X-Api-Key, X-Gone\r\nX-Gone: 1\r\n\r\n",
             &out, &t);
    assert_int_equal(t.result, 0);
    /* The host got it, once, and nothing that the client sent in its place. */
    assert_has(f->seen.data, "authorization: " VALUE "\r\n");
    assert_has(f->seen.data, "x-api-key: " SECRET "\r\n");
    assert_has(f->seen.data, "X-Kept: 1\r\n");
    assert_has(f->seen.data, "Host: " HOST "\r\n");
    assert_has_not(f->seen.data, "mine");
    assert_has_not(f->seen.data, "gzip");
    assert_has_not(f->seen.data, "X-Gone");
    /* It echoed it, and the sandbox did not get it. */
    assert_has(out.data, "HTTP/1.1 200 Fine\r\n");
    assert_has(out.data, "X-Kept: 1");
    assert_has(out.data, "Bearer ****");
    assert_has_not(out.data, SECRET);
    assert_true(t.to > 100 && t.from > 100);
}

static void body_keeps_connections(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    talk_begin(&t, f, HOST, false);
    say(&t, "GET /a HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
    hear(&t, &out, "\r\n\r\nok");
    /* Two at once, the first with a body in pieces. */
    say(&t, "POST /b HTTP/1.1\r\nHost: " HOST ":80\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5\r\nhello\r\n0\r\n\r\nGET /chunked HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
    hear(&t, &out, "\r\n0\r\n\r\n");
    assert_int_equal(f->connections, 1);
    assert_has(f->seen.data, "POST /b HTTP/1.1");
    assert_has(f->seen.data, "5\r\nhello\r\n0\r\n\r\n");
    assert_has_not(out.data, SECRET);
    assert_has_not(out.data, "very-sec");
    say(&t, "GET http://" HOST "/absolute?q=1 HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
    buf_clear(&out);
    hear(&t, &out, "\r\n\r\nok");
    assert_has(f->seen.data, "GET /absolute?q=1 HTTP/1.1\r\n");
    /* One that has no length ends with the connection to the host, but not with this one. */
    say(&t, "GET /ends HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
    hear(&t, &out, "\r\n0\r\n\r\n");
    say(&t, "PUT /c HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: 3\r\n"
            "Expect: 100-continue\r\n\r\n");
    hear(&t, &out, "100 Continue\r\n\r\n");
    buf_clear(&out);
    say(&t, "abc");
    hear(&t, &out, "\r\n\r\nok");
    assert_int_equal(f->connections, 2);
    talk_end(&t);
    assert_int_equal(t.result, 0);
}

/* What could hide an echo, or is easily forgotten. */
static void body_hidden_echoes(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    exchange(f, "GET /reason HTTP/1.1\r\nHost: " HOST "\r\nConnection: close\r\n\r\n", &out, &t);
    assert_has(out.data, "HTTP/1.1 200 ****");
    assert_has(out.data, " it was\r\n");
    assert_has_not(out.data, SECRET);
    buf_clear(&out);
    exchange(f, "GET /packed HTTP/1.1\r\nHost: " HOST "\r\nConnection: close\r\n\r\n", &out, &t);
    assert_has(out.data, "HTTP/1.1 502 ");
    assert_has(out.data, "encodes its answer unasked");
    assert_has_not(out.data, "packed");
    assert_int_equal(t.result, -1);
    buf_clear(&out);
    /* Nor is its length: of something packed with the secret, it tells how well a guess fits. */
    exchange(f, "HEAD /packed HTTP/1.1\r\nHost: " HOST "\r\nConnection: close\r\n\r\n", &out, &t);
    assert_has(out.data, "HTTP/1.1 200 ");
    assert_has_not(out.data, "Content-Length");
    assert_int_equal(t.result, 0);
    buf_clear(&out);
    exchange(f, "HEAD /ends HTTP/1.1\r\nHost: " HOST "\r\nConnection: close\r\n\r\n", &out, &t);
    assert_has(out.data, "Content-Length: 2\r\n");
}

/* A secret that is cut in two could not be found. */
static void body_parts_of_answers(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    exchange(f,
             "GET /a HTTP/1.1\r\nHost: " HOST "\r\nRange: bytes=1-2\r\nIf-range: x\r\n"
             "Request-Range: bytes=1-2\r\nAccept-Charset: utf-16\r\nConnection: close\r\n\r\n",
             &out, &t);
    assert_has(out.data, "\r\n\r\nok");
    assert_has_not(f->seen.data, "ange:");
    assert_has_not(f->seen.data, "utf-16");
    buf_clear(&out);
    exchange(f, "GET /part HTTP/1.1\r\nHost: " HOST "\r\n\r\n", &out, &t);
    assert_has(out.data, "HTTP/1.1 502 ");
    assert_has_not(out.data, "very-se");
    assert_int_equal(t.result, -1);
}

/* Whole lines of an answer go on at once; what is behind them waits for more, or for the clock. */
static void body_streams(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    talk_begin(&t, f, HOST, false);
    say(&t, "GET /events HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
    hear(&t, &out, "data: one\n\n");
    assert_has_not(out.data, "tail");
    f->go_on = true;
    hear(&t, &out, "tail"); /* by the clock: the host waits for the second step */
    f->go_on_again = true;
    hear(&t, &out, "\r\n0\r\n\r\n");
    assert_has(out.data, "******");
    assert_has_not(out.data, SECRET);
    talk_end(&t);
    assert_int_equal(t.result, 0);
}

static void body_redirects(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    exchange(f, "GET /redirect HTTP/1.1\r\nHost: " HOST "\r\nConnection: close\r\n\r\n", &out, &t);
    assert_has(out.data, "Location: http://" HOST "/next\r\n");
    assert_has_not(out.data, "Strict-Transport-Security");
    buf_clear(&out);
    exchange(f, "GET /away HTTP/1.0\r\nHost: " HOST "\r\n\r\n", &out, &t);
    assert_has(out.data, "Location: https://other.example/?t=1\r\n");
    assert_has_not(out.data, SECRET);
}

static void body_refuses(struct fixture *f)
{
    static const struct {
        const char *request, *status;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", "HTTP/1.1 421 "},
        {"GET http://other.example/ HTTP/1.1\r\nHost: " HOST "\r\n\r\n", "HTTP/1.1 421 "},
        {"GET / HTTP/1.1\r\nHost: " HOST ":8080\r\n\r\n", "HTTP/1.1 421 "},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 421 "},
        {"TRACE / HTTP/1.1\r\nHost: " HOST "\r\n\r\n", "HTTP/1.1 405 "},
        {"CONNECT " HOST ":443 HTTP/1.1\r\nHost: " HOST "\r\n\r\n", "HTTP/1.1 "},
        {"GET / HTTP/1.1\r\nHost: " HOST "\r\nHost: " HOST "\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\nHost: " HOST "\r\nX: a\r\n b\r\n\r\n", "HTTP/1.1 400 "},
        {"POST / HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: 1\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         "HTTP/1.1 400 "},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 "},
        {"\x16\x03\x01 no TLS here\r\n\r\n", "HTTP/1.1 400 "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
        struct talk t;
        exchange(f, rows[i].request, &out, &t);
        assert_int_equal(t.result, -1);
        assert_int_not_equal(t.session.verdict, NET_ALLOWED);
        assert_has(out.data, rows[i].status);
        assert_has(out.data, "Connection: close\r\n");
    }
    assert_int_equal(f->connections, 0);
    assert_int_equal(f->seen.len, 0);
}

/* A request for another host behind one for this: the first is served, the second is not. */
static void body_refuses_the_second(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    exchange(f,
             "GET /a HTTP/1.1\r\nHost: " HOST "\r\n\r\nGET /b HTTP/1.1\r\nHost: evil.example\r\n"
             "\r\n",
             &out, &t);
    assert_has(out.data, "\r\n\r\nok");
    assert_has(out.data, "HTTP/1.1 421 ");
    assert_has_not(f->seen.data, "evil");
}

static void body_checks_certificates(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    struct error err;
    f->server_name = "other.world.example";
    exchange(f, "GET / HTTP/1.1\r\nHost: " HOST "\r\n\r\n", &out, &t);
    assert_int_equal(t.session.verdict, NET_FAILED_TLS);
    assert_has(out.data, "HTTP/1.1 502 ");
    assert_has(out.data, "certificate");
    assert_int_equal(f->seen.len, 0); /* not a byte of the request */
    /* The right name from an authority that nobody knows. */
    f->server_name = HOST;
    tls_roots_free(f->roots);
    assert_int_equal(tls_roots_new(f->sandbox_file, &f->roots, &err), 0);
    buf_clear(&out);
    exchange(f, "GET / HTTP/1.1\r\nHost: " HOST "\r\n\r\n", &out, &t);
    assert_int_equal(t.session.verdict, NET_FAILED_TLS);
    assert_int_equal(f->seen.len, 0);
}

static void body_missing_secret(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    talk_begin(&t, f, "gone.world.example", false);
    say(&t, "GET / HTTP/1.1\r\nHost: gone.world.example\r\n\r\n");
    hear(&t, &out, NULL);
    talk_end(&t);
    assert_int_equal(t.session.verdict, NET_FAILED_SECRET);
    assert_has(out.data, "HTTP/1.1 502 ");
    assert_int_equal(f->connections, 0);
}

static void body_websocket(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct talk t;
    talk_begin(&t, f, HOST, false);
    say(&t, "GET /socket HTTP/1.1\r\nHost: " HOST "\r\nConnection: keep-alive, Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n"
            "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
    hear(&t, &out, "welcome");
    assert_has(out.data, "HTTP/1.1 101 ");
    assert_has(f->seen.data, "Upgrade: websocket\r\n");
    /* Compressed messages could not be searched. */
    assert_has_not(f->seen.data, "deflate");
    assert_has_not(out.data, "deflate");
    assert_has(f->seen.data, "authorization: " VALUE "\r\n");
    say(&t, "there " SECRET);
    hear(&t, &out, "there *****");
    assert_has_not(out.data, SECRET);
    talk_end(&t);
    /* Only where it was allowed. */
    buf_clear(&out);
    buf_clear(&f->seen);
    talk_begin(&t, f, "other.world.example", false);
    say(&t, "GET /socket HTTP/1.1\r\nHost: other.world.example\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\n\r\n");
    hear(&t, &out, NULL);
    assert_has(out.data, "HTTP/1.1 403 ");
    assert_has(out.data, "spec.network.headers");
    assert_int_equal(f->seen.len, 0);
    talk_end(&t);
}

/* The sandbox speaks TLS, and believes its own authority. */
static void body_ends_tls(struct fixture *f)
{
    _cleanup_buf_ struct buf out = BUF_INIT(TEXT_MAX);
    struct tls_roots *own = NULL;
    struct tls *tls = NULL;
    struct error err;
    struct talk t;
    char piece[4096];
    static const char request[] = "GET /echo HTTP/1.1\r\nHost: " HOST "\r\nConnection: close\r\n"
                                  "\r\n";
    assert_int_equal(tls_roots_new(f->sandbox_file, &own, &err), 0);
    talk_begin(&t, f, HOST, true);
    if (tls_connect(f->loop, t.inside, own, HOST, WAIT_MS, &tls, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(tls_write(tls, request, sizeof(request) - 1, WAIT_MS, &err), 0);
    for (ssize_t n; (n = tls_read(tls, piece, sizeof(piece), WAIT_MS, &err)) > 0;)
        buf_add(&out, piece, (size_t)n);
    tls_free(tls);
    talk_end(&t);
    assert_int_equal(t.result, 0);
    assert_has(f->seen.data, "authorization: " VALUE "\r\n");
    assert_has(out.data, "HTTP/1.1 200 Fine\r\n");
    assert_has_not(out.data, SECRET);

    /* Whoever does not believe it does not get that far. */
    talk_begin(&t, f, HOST, true);
    assert_int_equal(tls_connect(f->loop, t.inside, f->roots, HOST, WAIT_MS, &tls, &err), -1);
    talk_end(&t);
    assert_int_equal(t.session.verdict, NET_FAILED_TLS);
    tls_roots_free(own);
}

/* --- the fixture --- */

static void make_authority(const char *name, char file[64], struct ca **ret_ca, struct buf *pem,
                           struct buf *key)
{
    struct error err;
    snprintf(file, 64, "/tmp/cella-unit-XXXXXX");
    assert_int_equal(authority_make(name, pem, key, &err), 0);
    _cleanup_fd_ int fd = mkstemp(file);
    assert_int_equal(write(fd, pem->data, pem->len), (ssize_t)pem->len);
    if (ret_ca != NULL)
        assert_int_equal(ca_new(pem->data, (struct slice){key->data, key->len}, ret_ca, &err), 0);
}

static void run_body(void *arg)
{
    struct fixture *f = arg;
    struct task server = {0};
    struct error err;
    assert_int_equal(task_start(f->loop, &server, accept_all, f, &err), 0);
    f->body(f);
    task_stop(&server);
    loop_stop(f->loop);
}

static void make_rules(struct fixture *f, const struct buf *pem, const struct buf *key)
{
    static const char rules[] = HOST "\0authorization\0" VALUE "\0" SECRET "\0"
                                     "*.world.example\0x-api-key\0" SECRET "\0" SECRET "\0"
                                     "gone.world.example\0authorization\0\0";
    struct egress_secrets message = {.id = "x", .headers = {rules, sizeof(rules)}};
    struct error err;
    assert_int_equal(inject_new(&message, &f->inject, &err), 0);
    message.ca_certificate = pem->data;
    message.ca_key = (struct slice){key->data, key->len};
    assert_int_equal(inject_new(&message, &f->inject_tls, &err), 0);
}

static void run(void (*body)(struct fixture *f))
{
    _cleanup_buf_ struct buf pem = BUF_INIT(AUTHORITY_TEXT_MAX), key = BUF_INIT(AUTHORITY_TEXT_MAX);
    _cleanup_buf_ struct buf own = BUF_INIT(AUTHORITY_TEXT_MAX),
                             own_key = BUF_INIT(AUTHORITY_TEXT_MAX);
    struct fixture f = {.body = body, .server_name = HOST, .seen = BUF_INIT(TEXT_MAX)};
    struct error err;
    uint16_t port;
    signal(SIGPIPE, SIG_IGN);
    f.loop = loop_new(&err);
    make_authority("the world", f.roots_file, &f.world, &pem, &key);
    make_authority("a sandbox", f.sandbox_file, NULL, &own, &own_key);
    assert_int_equal(tls_roots_new(f.roots_file, &f.roots, &err), 0);
    make_rules(&f, &own, &own_key);
    assert_int_equal(net_listen("127.0.0.1:0", 16, &f.listen_fd, &port, &err), 0);
    snprintf(f.address, sizeof(f.address), "127.0.0.1:%u", port);
    assert_int_equal(co_spawn(f.loop, run_body, &f, NULL, &err), 0);
    assert_int_equal(loop_run(f.loop, &err), 0);
    close(f.listen_fd);
    unlink(f.roots_file);
    unlink(f.sandbox_file);
    inject_unref(f.inject);
    inject_unref(f.inject_tls);
    ca_free(f.world);
    tls_roots_free(f.roots);
    buf_release(&f.seen);
    loop_free(f.loop);
}

#define TEST(name)                                                                                 \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        run(body_##name);                                                                          \
    }

TEST(adds_the_header)
TEST(keeps_connections)
TEST(redirects)
TEST(refuses)
TEST(refuses_the_second)
TEST(checks_certificates)
TEST(missing_secret)
TEST(websocket)
TEST(hidden_echoes)
TEST(parts_of_answers)
TEST(streams)
TEST(ends_tls)

/* --- rules --- */

static void test_rules(void **state)
{
    static const char list[] = "a.example\0h\0v\0s\0*.b.example\0h\0v\0s\0a.example\0i\0v\0s";
    static const char *const bad[] = {"a.example\0h\0v", "10.0.0.0/8\0h\0v\0s",
                                      "a.example\0h:\0v\0s", "a.example\0\0v\0s"};
    static const size_t bad_len[] = {14, 17, 17, 15};
    struct egress_secrets message = {.id = "x", .headers = {list, sizeof(list)}};
    struct inject *inject;
    struct error err;
    assert_int_equal(inject_new(&message, &inject, &err), 0);
    const struct inject_header *first = inject_next(inject, "a.example", NULL);
    assert_string_equal(first->name, "h");
    assert_string_equal(inject_next(inject, "a.example", first)->name, "i");
    assert_non_null(inject_next(inject, "x.b.example", NULL));
    assert_null(inject_next(inject, "b.example", NULL));
    assert_null(inject_next(inject, "xa.example", NULL));
    assert_null(inject_next(NULL, "a.example", NULL));
    assert_false(inject_ends_tls(inject, "a.example"));
    inject_unref(inject);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        message.headers = (struct slice){bad[i], bad_len[i]};
        assert_int_equal(inject_new(&message, &inject, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
    message = (struct egress_secrets){.id = "x", .ca_certificate = "no PEM", .ca_key = {"x", 1}};
    assert_int_equal(inject_new(&message, &inject, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adds_the_header),
        cmocka_unit_test(test_keeps_connections),
        cmocka_unit_test(test_redirects),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_refuses_the_second),
        cmocka_unit_test(test_checks_certificates),
        cmocka_unit_test(test_missing_secret),
        cmocka_unit_test(test_websocket),
        cmocka_unit_test(test_hidden_echoes),
        cmocka_unit_test(test_parts_of_answers),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_ends_tls),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests_name("egress/inject", tests, NULL, NULL);
}
