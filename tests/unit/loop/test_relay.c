/* SPDX-License-Identifier: Apache-2.0 */

/* Tasks, and sockets joined by net_relay(). */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/co.h"
#include "loop/net.h"
#include "loop/task.h"

enum { BIG = 24 << 20, LONG_MS = 60 * 1000 };

/* left ⇄ inner[0] … relay … inner[1] ⇄ right */
struct fixture {
    struct loop *loop;
    int left, right, inner[2];
    int rc;
    bool ended;
    struct error err;
    int64_t idle_ms;
    struct task relay;
    void (*body)(struct fixture *f);
};

static void relay_main(void *arg)
{
    struct fixture *f = arg;
    f->rc = net_relay(f->loop, f->inner[0], f->inner[1], f->idle_ms, &f->err);
    f->ended = true;
    close(f->inner[0]);
    close(f->inner[1]);
}

static void pair(int *a, int *b)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *a = fds[0];
    *b = fds[1];
}

static void test_main(void *arg)
{
    struct fixture *f = arg;
    pair(&f->left, &f->inner[0]);
    pair(&f->right, &f->inner[1]);
    assert_int_equal(task_start(f->loop, &f->relay, relay_main, f, &f->err), 0);
    f->body(f);
    cleanup_fd(&f->left);
    cleanup_fd(&f->right);
    task_join(&f->relay);
    loop_stop(f->loop);
}

static void run(void (*body)(struct fixture *f), int64_t idle_ms)
{
    struct fixture f = {.body = body, .idle_ms = idle_ms, .left = -1, .right = -1};
    signal(SIGPIPE, SIG_IGN);
    f.loop = loop_new(&f.err);
    assert_int_equal(co_spawn(f.loop, test_main, &f, NULL, &f.err), 0);
    assert_int_equal(loop_run(f.loop, &f.err), 0);
    loop_free(f.loop);
}

static void put(struct fixture *f, int fd, const char *text)
{
    assert_int_equal(net_write(f->loop, fd, text, strlen(text), LONG_MS, &f->err), 0);
}

static void expect(struct fixture *f, int fd, const char *text)
{
    char got[64] = "";
    assert_int_equal(net_read_whole(f->loop, fd, got, strlen(text), LONG_MS, &f->err), 0);
    assert_string_equal(got, text);
}

static void expect_end(struct fixture *f, int fd)
{
    char byte;
    assert_int_equal(net_read(f->loop, fd, &byte, 1, LONG_MS, &f->err), 0);
}

static void close_fd(int *fd)
{
    close(*fd);
    *fd = -1;
}

/* --- both ways, and the ends one after the other --- */

static void halves(struct fixture *f)
{
    put(f, f->left, "there");
    expect(f, f->right, "there");
    put(f, f->right, "back");
    expect(f, f->left, "back");
    shutdown(f->left, SHUT_WR);
    expect_end(f, f->right);
    put(f, f->right, "still"); /* the other direction goes on */
    expect(f, f->left, "still");
    assert_false(f->ended);
    shutdown(f->right, SHUT_WR);
    expect_end(f, f->left);
    task_join(&f->relay);
    assert_int_equal(f->rc, 0);
}

static void test_halves(void **state)
{
    run(halves, LONG_MS);
}

/* --- much, both ways at once --- */

static void write_much(void *arg)
{
    struct fixture *f = arg;
    char *big = malloc(BIG);
    for (int i = 0; i < BIG; i++)
        big[i] = (char)(i * 7 >> 4);
    assert_int_equal(net_write(f->loop, f->left, big, BIG, LONG_MS, &f->err), 0);
    shutdown(f->left, SHUT_WR);
    free(big);
}

static void echo_much(void *arg)
{
    struct fixture *f = arg;
    char piece[50000];
    ssize_t n;
    while ((n = net_read(f->loop, f->right, piece, sizeof(piece), LONG_MS, &f->err)) > 0)
        assert_int_equal(net_write(f->loop, f->right, piece, (size_t)n, LONG_MS, &f->err), 0);
    shutdown(f->right, SHUT_WR);
}

static void much(struct fixture *f)
{
    struct task writer = {0}, echoer = {0};
    struct error err;
    assert_int_equal(task_start(f->loop, &writer, write_much, f, &err), 0);
    assert_int_equal(task_start(f->loop, &echoer, echo_much, f, &err), 0);
    char piece[30000];
    size_t total = 0;
    ssize_t n;
    while ((n = net_read(f->loop, f->left, piece, sizeof(piece), LONG_MS, &err)) > 0)
        for (ssize_t i = 0; i < n; i++, total++)
            if (piece[i] != (char)((int)total * 7 >> 4))
                fail_msg("byte %zu", total);
    assert_int_equal(total, BIG);
    task_join(&writer);
    task_join(&echoer);
    task_join(&f->relay);
    assert_int_equal(f->rc, 0);
}

static void test_much(void **state)
{
    run(much, LONG_MS);
}

/* --- ends that are not nice --- */

static void vanish(struct fixture *f)
{
    put(f, f->right, "unread");
    close_fd(&f->left);
    put(f, f->right, "more");
    close_fd(&f->right);
    task_join(&f->relay);
}

static void test_vanish(void **state)
{
    run(vanish, LONG_MS);
}

static void cancel(struct fixture *f)
{
    put(f, f->left, "x");
    expect(f, f->right, "x");
    task_stop(&f->relay);
    assert_int_equal(f->rc, -1);
    assert_int_equal(f->err.code, ERROR_CANCELLED);
    expect_end(f, f->left);
}

static void test_cancel(void **state)
{
    run(cancel, LONG_MS);
}

static void silence(struct fixture *f)
{
    put(f, f->left, "x");
    task_join(&f->relay);
    assert_int_equal(f->rc, -1);
    assert_int_equal(f->err.code, ERROR_TIMEOUT);
}

static void test_silence(void **state)
{
    run(silence, 200);
}

/* A reader that does not read holds the writer back, and nothing grows. */
static void backpressure(struct fixture *f)
{
    char piece[65536] = "";
    size_t taken = 0;
    for (int quiet = 0; quiet < 20;) {
        ssize_t n = send(f->left, piece, sizeof(piece), MSG_DONTWAIT);
        quiet = n > 0 ? 0 : quiet + 1;
        taken += n > 0 ? (size_t)n : 0;
        co_sleep(f->loop, 1, NULL);
        assert_true(taken < 64 << 20);
    }
}

static void test_backpressure(void **state)
{
    run(backpressure, LONG_MS);
}

/* --- tasks --- */

struct sleeping {
    struct loop *loop;
    int rc;
};

static void sleeper(void *arg)
{
    struct sleeping *s = arg;
    s->rc = co_sleep(s->loop, LONG_MS, NULL);
}

static void tasks(void *arg)
{
    struct loop *loop = arg;
    struct sleeping s = {.rc = 7, .loop = loop};
    struct task t = {0}, never = {0};
    task_join(&never);
    task_stop(&never);
    assert_int_equal(task_start(loop, &t, sleeper, &s, NULL), 0);
    assert_non_null(t.co);
    task_stop(&t);
    assert_null(t.co);
    assert_int_equal(s.rc, -1);
    task_stop(&t);
    loop_stop(loop);
}

static void test_tasks(void **state)
{
    struct error err;
    struct loop *loop = loop_new(&err);
    assert_int_equal(co_spawn(loop, tasks, loop, NULL, &err), 0);
    assert_int_equal(loop_run(loop, &err), 0);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),  cmocka_unit_test(test_much),
        cmocka_unit_test(test_vanish),  cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_silence), cmocka_unit_test(test_backpressure),
        cmocka_unit_test(test_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
