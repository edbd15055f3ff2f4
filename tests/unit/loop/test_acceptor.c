/* SPDX-License-Identifier: Apache-2.0 */

/* Connections that are served within a limit, and cut off at the end. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/acceptor.h"
#include "loop/co.h"
#include "loop/net.h"

enum { LONG_MS = 60 * 1000, MAX = 2, CLIENTS = 3 };

struct fixture {
    struct loop *loop;
    unsigned serving, most, served, cancelled;
};

/* Says hello, and waits for the client to go. */
static void serve(void *ctx, int fd)
{
    struct fixture *f = ctx;
    struct error err = {0};
    char byte;
    f->serving++;
    f->most = f->serving > f->most ? f->serving : f->most;
    if (net_write(f->loop, fd, "!", 1, LONG_MS, &err) == 0 &&
        net_read(f->loop, fd, &byte, 1, LONG_MS, &err) < 0 && err.code == ERROR_CANCELLED)
        f->cancelled++;
    f->serving--;
    f->served++;
}

static void test_main(void *arg)
{
    struct fixture *f = arg;
    struct acceptor *acceptor;
    struct error err = {0};
    char address[32], byte;
    uint16_t port;
    int listening, clients[CLIENTS];
    assert_int_equal(net_listen("127.0.0.1:0", 16, &listening, &port, &err), 0);
    assert_int_equal(acceptor_new(f->loop, listening, MAX, serve, f, &acceptor, &err), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(net_connect(f->loop, address, LONG_MS, &clients[i], &err), 0);
    for (int i = 0; i < MAX; i++)
        assert_int_equal(net_read(f->loop, clients[i], &byte, 1, LONG_MS, &err), 1);
    close(clients[0]); /* makes room for the third */
    assert_int_equal(net_read(f->loop, clients[2], &byte, 1, LONG_MS, &err), 1);
    assert_int_equal(f->most, MAX);
    assert_int_equal(f->served, 1);
    acceptor_end(acceptor);
    assert_int_equal(f->served, CLIENTS);
    assert_int_equal(f->cancelled, MAX);
    assert_int_equal(net_read(f->loop, clients[1], &byte, 1, LONG_MS, &err), 0);
    assert_int_equal(net_connect(f->loop, address, LONG_MS, &clients[0], &err), -1);
    close(clients[1]);
    close(clients[2]);
    loop_stop(f->loop);
}

static void test_limit_and_end(void **state)
{
    struct error err = {0};
    struct fixture f = {.loop = loop_new(&err)};
    assert_non_null(f.loop);
    assert_int_equal(co_spawn(f.loop, test_main, &f, NULL, &err), 0);
    assert_int_equal(loop_run(f.loop, &err), 0);
    loop_free(f.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
