/* SPDX-License-Identifier: Apache-2.0 */

/* Sockets for coroutines: addresses, connecting, reading and writing, and the pump. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/address.h"
#include "loop/co.h"
#include "loop/net.h"

enum { BIG = 8 << 20 };

struct fixture {
    struct loop *loop;
    char dir[64];
    char address[128];
    int listen_fd;
    int server_fd;
    int client_fd;
    int through[2];
    int running;
    void (*body)(struct fixture *f);
};

static int setup(void **state)
{
    struct error err;
    signal(SIGPIPE, SIG_IGN);
    struct fixture *f = calloc(1, sizeof(*f));
    f->loop = loop_new(&err);
    f->listen_fd = f->server_fd = f->client_fd = f->through[0] = f->through[1] = -1;
    snprintf(f->dir, sizeof(f->dir), "/tmp/cella-net-XXXXXX");
    *state = f;
    return f->loop == NULL || mkdtemp(f->dir) == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int fds[] = {f->listen_fd, f->server_fd, f->client_fd, f->through[0], f->through[1]};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        cleanup_fd(&fds[i]);
    if (strncmp(f->address, "unix:", 5) == 0)
        unlink(f->address + 5);
    rmdir(f->dir);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void body(void *arg)
{
    struct fixture *f = arg;
    f->body(f);
    loop_stop(f->loop);
}

static void run(struct fixture *f, void (*fn)(struct fixture *))
{
    struct error err;
    f->body = fn;
    assert_int_equal(co_spawn(f->loop, body, f, NULL, &err), 0);
    assert_int_equal(loop_run(f->loop, &err), 0);
}

static void listen_tcp(struct fixture *f)
{
    struct error err;
    uint16_t port = 0;
    assert_int_equal(net_listen("127.0.0.1:0", 16, &f->listen_fd, &port, &err), 0);
    assert_int_not_equal(port, 0);
    snprintf(f->address, sizeof(f->address), "localhost:%u", port);
}

static void connect_pair(struct fixture *f)
{
    struct error err = {0};
    if (net_connect(f->loop, f->address, 1000, &f->client_fd, &err) != 0)
        fail_msg("%s", err.message);
    f->server_fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(f->server_fd >= 0);
}

static void addresses_are_checked(void **state)
{
    struct error err;
    int fd;
    static const char *const bad[] = {
        "",           "7070",      "127.0.0.1",    "127.0.0.1:", "127.0.0.1:65536",
        "::1:80",     "[::1]",     "[::1:80",      "example:80", "127.0.0.1:8a",
        "unix:",      "localhost", "1.2.3.4.5:80", "[zz]:80",    "127.0.0.1:-1",
        "256.0.0.1:1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(net_listen(bad[i], 1, &fd, NULL, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
    char long_path[200] = "unix:";
    memset(long_path + 5, 'x', sizeof(long_path) - 6);
    assert_int_equal(net_listen(long_path, 1, &fd, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
}

static void refused(struct fixture *f)
{
    struct error err;
    listen_tcp(f);
    close(steal_fd(&f->listen_fd));
    assert_int_equal(net_connect(f->loop, f->address, 1000, &f->client_fd, &err), -1);
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
}

static void nobody_listens(void **state)
{
    run(*state, refused);
}

static void talks(struct fixture *f)
{
    struct error err;
    char got[16] = "";
    connect_pair(f);
    assert_int_equal(net_read(f->loop, f->server_fd, got, sizeof(got), 2, &err), -1);
    assert_int_equal(err.code, ERROR_TIMEOUT);
    assert_int_equal(net_write(f->loop, f->client_fd, "hello", 5, 1000, &err), 0);
    assert_int_equal(net_read_whole(f->loop, f->server_fd, got, 5, 1000, &err), 0);
    assert_string_equal(got, "hello");
    assert_int_equal(net_write(f->loop, f->client_fd, "abc", 3, 1000, &err), 0);
    close(steal_fd(&f->client_fd));
    assert_int_equal(net_read_whole(f->loop, f->server_fd, got, 4, 1000, &err), -1);
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
    assert_int_equal(net_read(f->loop, f->server_fd, got, 4, 1000, &err), 0);
}

static void tcp_reads_and_writes(void **state)
{
    listen_tcp(*state);
    run(*state, talks);
}

static void unix_reads_and_writes(void **state)
{
    struct fixture *f = *state;
    struct error err;
    snprintf(f->address, sizeof(f->address), "unix:%s/s", f->dir);
    assert_int_equal(net_listen(f->address, 16, &f->listen_fd, NULL, &err), 0);
    int second;
    assert_int_equal(net_listen(f->address, 16, &second, NULL, &err), -1); /* it is in use */
    close(steal_fd(&f->listen_fd));
    assert_int_equal(net_listen(f->address, 16, &f->listen_fd, NULL, &err), 0); /* dead: replaced */
    run(f, talks);
}

static void connects_at(struct fixture *f)
{
    struct error err = {0};
    _cleanup_fd_ int dir_fd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (net_connect_at(f->loop, dir_fd, "s", 1000, &f->client_fd, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(net_connect_at(f->loop, dir_fd, "none", 1000, &f->server_fd, &err), -1);
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
}

static void unix_socket_in_a_directory(void **state)
{
    struct fixture *f = *state;
    struct error err;
    snprintf(f->address, sizeof(f->address), "unix:%s/s", f->dir);
    assert_int_equal(net_listen(f->address, 16, &f->listen_fd, NULL, &err), 0);
    run(f, connects_at);
}

/* --- the pump --- */

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 31 + (i >> 8));
}

static void sends_big(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    unsigned char *data = malloc(BIG + 3);
    for (size_t i = 0; i < BIG + 3; i++)
        data[i] = pattern(i);
    assert_int_equal(net_write(f->loop, f->client_fd, data, BIG + 3, 5000, &err), 0);
    free(data);
    f->running--;
}

static void receives_big(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    unsigned char *data = malloc(BIG);
    assert_int_equal(net_read_whole(f->loop, f->through[1], data, BIG, 5000, &err), 0);
    for (size_t i = 0; i < BIG; i++)
        assert_true(data[i] == pattern(i));
    free(data);
    f->running--;
}

static void pumps(struct fixture *f)
{
    struct error err = {0};
    char rest[8];
    connect_pair(f);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, f->through),
                     0);
    f->running = 2;
    assert_int_equal(co_spawn(f->loop, sends_big, f, NULL, &err), 0);
    assert_int_equal(co_spawn(f->loop, receives_big, f, NULL, &err), 0);
    if (net_pump(f->loop, f->server_fd, f->through[0], BIG, 5000, &err) != 0)
        fail_msg("%s", err.message);
    /* exactly that much: the three bytes behind it are still there */
    assert_int_equal(net_read_whole(f->loop, f->server_fd, rest, 3, 1000, &err), 0);
    while (f->running > 0)
        assert_int_equal(co_sleep(f->loop, 1, &err), 0);
    /* an end too early, and a reader that went away, are errors; the pipe is not used again */
    assert_int_equal(net_write(f->loop, f->client_fd, "abc", 3, 1000, &err), 0);
    close(steal_fd(&f->client_fd));
    assert_int_equal(net_pump(f->loop, f->server_fd, f->through[0], 10, 1000, &err), -1);
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
    close(steal_fd(&f->through[1]));
    close(steal_fd(&f->server_fd));
    connect_pair(f);
    assert_int_equal(net_write(f->loop, f->client_fd, "abc", 3, 1000, &err), 0);
    assert_int_equal(net_pump(f->loop, f->server_fd, f->through[0], 3, 1000, &err), -1);
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
}

static void pump_moves_exactly(void **state)
{
    listen_tcp(*state);
    run(*state, pumps);
}

static void addresses_are_written_as_they_are_read(void **state)
{
    static const char *const texts[] = {"127.0.0.1:7070", "[::1]:1", "[2001:db8::7]:65535"};
    char text[SOCKET_ADDRESS_TEXT_SIZE];
    struct socket_address address;
    struct error err;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(socket_address_parse(texts[i], &address, &err), 0);
        socket_address_text(&address, text);
        assert_string_equal(text, texts[i]);
    }
    assert_int_equal(socket_address_parse("unix:/tmp/x", &address, &err), 0);
    socket_address_text(&address, text);
    assert_string_equal(text, "unix");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(addresses_are_checked),
        TEST(nobody_listens),
        TEST(tcp_reads_and_writes),
        TEST(unix_reads_and_writes),
        TEST(unix_socket_in_a_directory),
        TEST(pump_moves_exactly),
        TEST(addresses_are_written_as_they_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
