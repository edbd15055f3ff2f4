/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A server on a loop of its own and raw clients beside it, for the tests of this folder. The test
 * body runs on a coroutine; when it returns the server is shut down.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "http/server.h"
#include "loop/co.h"
#include "loop/net.h"

struct fixture {
    struct loop *loop;
    struct http_server *server;
    char address[64];
    void (*body)(struct fixture *f);
    void *data; /* the test's */
    int count;
};

static inline void fixture_main(void *arg)
{
    struct fixture *f = arg;
    f->body(f);
    http_server_shutdown(f->server, 1000);
    loop_stop(f->loop);
}

/* Runs body with a server that has this handler (its ctx is the fixture) and limits. */
static inline void fixture_run(http_handler *handler, const struct http_limits *limits,
                               void (*body)(struct fixture *f), void *data)
{
    struct error err = {0};
    uint16_t port = 0;
    int fd = -1;
    signal(SIGPIPE, SIG_IGN);
    struct fixture f = {.body = body, .data = data};
    f.loop = loop_new(&err);
    assert_non_null(f.loop);
    f.server = http_server_new(f.loop, handler, &f, limits, &err);
    assert_non_null(f.server);
    assert_int_equal(net_listen("127.0.0.1:0", 64, &fd, &port, &err), 0);
    snprintf(f.address, sizeof(f.address), "127.0.0.1:%u", port);
    assert_int_equal(http_server_add(f.server, fd, &err), 0);
    assert_int_equal(co_spawn(f.loop, fixture_main, &f, NULL, &err), 0);
    assert_int_equal(loop_run(f.loop, &err), 0);
    http_server_free(f.server);
    loop_free(f.loop);
}

static inline int raw_connect(struct fixture *f)
{
    struct error err = {0};
    int fd = -1;
    if (net_connect(f->loop, f->address, 1000, &fd, &err) != 0)
        fail_msg("%s", err.message);
    return fd;
}

static inline void raw_send(struct fixture *f, int fd, const char *data, size_t len)
{
    struct error err = {0};
    if (net_write(f->loop, fd, data, len, 5000, &err) != 0)
        fail_msg("%s", err.message);
}

static inline void raw_sends(struct fixture *f, int fd, const char *text)
{
    raw_send(f, fd, text, strlen(text));
}

/* Everything up to the server's end of the connection; to free(). */
static inline char *raw_read_all(struct fixture *f, int fd)
{
    struct error err = {0};
    struct buf b = BUF_INIT(1 << 20);
    char piece[4096];
    ssize_t n;
    while ((n = net_read(f->loop, fd, piece, sizeof(piece), 10000, &err)) > 0)
        buf_add(&b, piece, (size_t)n);
    if (n < 0 && err.sys == 0)
        fail_msg("%s after: %s", err.message, b.data);
    return buf_steal(&b);
}

/* Reads until the text has come. */
static inline void raw_expect(struct fixture *f, int fd, const char *text)
{
    struct error err = {0};
    char got[8192] = "";
    size_t len = 0;
    while (strstr(got, text) == NULL) {
        ssize_t n = net_read(f->loop, fd, got + len, sizeof(got) - 1 - len, 10000, &err);
        if (n <= 0)
            fail_msg("no %s in: %s", text, got);
        len += (size_t)n;
        got[len] = '\0';
    }
}

/* "200 400 ": the status of each answer in a byte stream, by their own framing. Answers to HEAD
 * cannot be told from their bytes: ask for none of them. */
static inline void statuses_of(const char *stream, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    while (*stream != '\0') {
        int status = 0;
        const char *end = strstr(stream, "\r\n\r\n");
        if (sscanf(stream, "HTTP/1.1 %3d", &status) != 1 || end == NULL)
            fail_msg("not an answer: %s", stream);
        used += (size_t)snprintf(text + used, size - used, "%d ", status);
        const char *length = strstr(stream, "Content-Length: ");
        const char *chunked = strstr(stream, "Transfer-Encoding: chunked");
        size_t body = length != NULL && length < end ? strtoul(length + 16, NULL, 10) : 0;
        stream = end + 4;
        if (chunked != NULL && chunked < end) {
            const char *last = strstr(stream, "0\r\n\r\n");
            assert_non_null(last);
            body = (size_t)(last + 5 - stream);
        }
        assert_true(strlen(stream) >= body);
        stream += body;
    }
}
