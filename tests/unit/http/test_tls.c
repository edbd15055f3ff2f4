/* SPDX-License-Identifier: Apache-2.0 */

/* HTTP and TLS on one port: every kind of request and answer by both, and peers that shake no
 * hands. */

#include "fixture.h"

#include <errno.h>
#include <sys/epoll.h>

#include "auth/seal.h"
#include "auth/server_certificate.h"
#include "base/limits.h"
#include "http/client.h"
#include "http/tls.h"
#include "http/upgrade.h"
#include "http/websocket.h"
#include "loop/task.h"

enum { BIG = 3 * 1000 * 1000 };

struct world {
    char *ca;
    struct tls_context *server;
    struct tls_context *client;   /* believes ca */
    struct tls_context *stranger; /* does not */
};

static struct buf make_pem(const char *ca, const char *key, const char *name)
{
    struct buf pem = BUF_INIT(TLS_PEM_MAX);
    struct server_names names = {0};
    struct error err = {0};
    server_names_add(&names, name, strlen(name));
    server_names_add(&names, "127.0.0.1", 9);
    if (server_certificate_make(ca, key, &names, &pem, &err) != 0)
        fail_msg("%s", err.message);
    return pem;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct error err = {0};
    struct buf ca = BUF_INIT(TLS_PEM_MAX);
    _cleanup_wipe_ struct buf key = BUF_INIT(TLS_PEM_MAX);
    assert_non_null(w);
    assert_int_equal(server_authority_make("Cella test", &ca, &key, &err), 0);
    _cleanup_wipe_ struct buf pem = make_pem(ca.data, key.data, "cella.test");
    assert_int_equal(tls_context_server((struct slice){pem.data, pem.len}, &w->server, &err), 0);
    w->ca = buf_steal(&ca);
    assert_int_equal(tls_context_client(w->ca, &w->client, &err), 0);
    assert_int_equal(tls_context_client(NULL, &w->stranger, &err), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    tls_context_free(w->server);
    tls_context_free(w->client);
    tls_context_free(w->stranger);
    free(w->ca);
    free(w);
    return 0;
}

/* --- the server --- */

static char *big_text(void)
{
    char *text = malloc(BIG + 1);
    assert_non_null(text);
    for (size_t i = 0; i < BIG; i++)
        text[i] = (char)('a' + (i * 7 + i / 1000) % 26);
    text[BIG] = '\0';
    return text;
}

static void fill_socket(void *arg)
{
    struct fixture *f = arg;
    _cleanup_free_ char *text = big_text();
    struct error err;
    assert_int_equal(net_write(f->loop, f->count, text, BIG, 10000, &err), 0);
}

/* As what comes out of a sandbox does. */
static int reply_pumped(struct http_exchange *x, struct fixture *f, struct error *err)
{
    int pair[2];
    struct task writer = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    f->count = pair[0];
    assert_int_equal(task_start(f->loop, &writer, fill_socket, f, err), 0);
    bool chunked = strcmp(http_request(x)->path, "/pumped/chunked") == 0;
    int rc = http_reply_start(x, 200, "text/plain", chunked ? -1 : BIG, err);
    if (rc == 0)
        rc = http_reply_pump(x, pair[1], BIG, err);
    task_stop(&writer);
    close(pair[0]);
    close(pair[1]);
    return rc != 0 ? -1 : http_reply_end(x, err);
}

struct sink {
    struct loop *loop;
    int fd;
    size_t count;
};

static void drain_socket(void *arg)
{
    struct sink *sink = arg;
    char piece[8192];
    struct error err;
    ssize_t n;
    while ((n = net_read(sink->loop, sink->fd, piece, sizeof(piece), 10000, &err)) > 0)
        sink->count += (size_t)n;
}

static int take_pumped(struct http_exchange *x, struct fixture *f, struct error *err)
{
    int pair[2];
    struct task reader = {0};
    uint64_t moved = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    struct sink sink = {.loop = f->loop, .fd = pair[1]};
    assert_int_equal(task_start(f->loop, &reader, drain_socket, &sink, err), 0);
    int rc = http_body_pump(x, pair[0], UINT64_MAX, &moved, err);
    close(pair[0]);
    task_join(&reader);
    close(pair[1]);
    char text[64];
    int n = snprintf(text, sizeof(text), "%zu", sink.count);
    return rc != 0 ? -1 : http_reply(x, 200, "text/plain", text, (size_t)n, err);
}

static int echo(struct http_exchange *x, struct error *err)
{
    struct websocket *ws = NULL;
    struct ws_message message;
    int rc;
    if (websocket_accept(x, NULL, &ws, err) != 0)
        return -1;
    while ((rc = websocket_read(ws, &message, err)) > 0)
        if (websocket_send(ws, WS_BINARY, message.data.data, message.data.len, err) != 0)
            break;
    websocket_free(ws);
    return rc;
}

/* A last word right before the end. */
static int tunnel(struct http_exchange *x, struct fixture *f, struct error *err)
{
    int fd;
    struct slice early;
    char byte;
    if (http_upgrade(x, "tcp", &fd, &early, err) != 0 ||
        net_read(f->loop, fd, &byte, 1, 10000, err) != 1)
        return -1;
    _cleanup_free_ char *text = big_text();
    return net_write(f->loop, fd, text, BIG, 10000, err);
}

static int serve(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    const char *path = http_request(x)->path;
    if (strncmp(path, "/pumped", 7) == 0)
        return reply_pumped(x, f, err);
    if (strcmp(path, "/take") == 0)
        return take_pumped(x, f, err);
    if (strcmp(path, "/echo") == 0)
        return echo(x, err);
    if (strcmp(path, "/tunnel") == 0)
        return tunnel(x, f, err);
    return http_reply(x, 200, "text/plain", path, strlen(path), err);
}

static struct world *world_of(struct fixture *f)
{
    struct world *w = f->data;
    http_server_set_tls(f->server, w->server);
    return w;
}

static struct http_client *client_of(struct fixture *f, struct tls_context *tls, const char *name)
{
    struct error err = {0};
    struct http_client *client = http_client_new(f->loop, f->address, "cella.test", &err);
    assert_non_null(client);
    if (tls != NULL)
        assert_int_equal(http_client_set_tls(client, tls, name, &err), 0);
    return client;
}

static void expect_answer(struct http_client *client, const struct http_call *call,
                          const char *wanted, size_t wanted_len)
{
    struct error err = {0};
    struct http_answer answer;
    char *body = NULL;
    size_t len = 0;
    if (http_client_send(client, call, &err) != 0 ||
        http_client_answer(client, &answer, &err) != 0 ||
        http_client_read_all(client, BIG + 1, &body, &len, &err) != 0)
        fail_msg("%s: %s", call->target, err.message);
    assert_int_equal(answer.status, 200);
    assert_int_equal(len, wanted_len);
    assert_memory_equal(body, wanted, len);
    free(body);
}

/* --- requests --- */

static void ask_all(struct http_client *client)
{
    _cleanup_free_ char *text = big_text();
    char size[32];
    snprintf(size, sizeof(size), "%d", BIG);
    for (int i = 0; i < 3; i++) /* one connection */
        expect_answer(client, &(struct http_call){.method = "GET", .target = "/hello"}, "/hello",
                      6);
    expect_answer(client, &(struct http_call){.method = "GET", .target = "/pumped"}, text, BIG);
    expect_answer(client, &(struct http_call){.method = "GET", .target = "/pumped/chunked"}, text,
                  BIG);
    expect_answer(client,
                  &(struct http_call){.method = "POST", .target = "/take", .body = {text, BIG}},
                  size, strlen(size));
}

static void both_body(struct fixture *f)
{
    struct world *w = world_of(f);
    struct http_client *by_name = client_of(f, w->client, "cella.test");
    struct http_client *by_address = client_of(f, w->client, "127.0.0.1");
    struct http_client *plain = client_of(f, NULL, NULL);
    ask_all(plain);
    ask_all(by_name);
    ask_all(by_address);
    ask_all(plain);
    http_client_free(plain);
    http_client_free(by_name);
    http_client_free(by_address);
}

static void test_both(void **state)
{
    fixture_run(serve, NULL, both_body, *state);
}

/* --- whom a client believes --- */

static void refused(struct fixture *f, struct tls_context *tls, const char *name)
{
    struct http_client *client = client_of(f, tls, name);
    struct error err = {0};
    assert_int_equal(
        http_client_send(client, &(struct http_call){.method = "GET", .target = "/"}, &err), -1);
    assert_int_equal(err.code, ERROR_UPSTREAM_FAILED);
    http_client_free(client);
}

static void belief_body(struct fixture *f)
{
    struct world *w = world_of(f);
    refused(f, w->stranger, "cella.test");
    refused(f, w->client, "another.test");
    refused(f, w->client, "127.0.0.2");
}

static void test_belief(void **state)
{
    fixture_run(serve, NULL, belief_body, *state);
}

/* --- after an upgrade --- */

static void websocket_body(struct fixture *f)
{
    struct world *w = world_of(f);
    struct http_client *client = client_of(f, w->client, "cella.test");
    struct error err = {0};
    struct websocket *ws = NULL;
    struct http_answer answer;
    struct http_call call = {.method = "GET", .target = "/echo"};
    _cleanup_free_ char *text = big_text();
    if (websocket_connect(client, &call, NULL, &ws, &answer, &err) != 0)
        fail_msg("%s", err.message);
    assert_non_null(ws);
    for (int i = 0; i < 20; i++) {
        struct ws_message message;
        size_t len = i % 2 == 0 ? 5 : 900 * 1000;
        assert_int_equal(websocket_send(ws, WS_BINARY, text, len, &err), 0);
        assert_int_equal(websocket_read(ws, &message, &err), 1);
        assert_int_equal(message.data.len, len);
        assert_memory_equal(message.data.data, text, len);
    }
    struct ws_message last;
    assert_int_equal(websocket_close(ws, WS_CLOSE_NORMAL, NULL, &err), 0);
    assert_int_equal(websocket_read(ws, &last, &err), 0);
    websocket_free(ws);
    http_client_free(client);
}

static void test_websocket(void **state)
{
    fixture_run(serve, NULL, websocket_body, *state);
}

static void tunnel_body(struct fixture *f)
{
    struct world *w = world_of(f);
    struct http_client *client = client_of(f, w->client, "cella.test");
    const struct http_header asked[] = {{"Connection", "Upgrade"}, {"Upgrade", "tcp"}};
    struct http_call call = {
        .method = "GET", .target = "/tunnel", .headers = asked, .header_count = 2, .upgrade = true};
    struct http_answer answer;
    struct error err = {0};
    struct slice early;
    assert_int_equal(http_client_send(client, &call, &err), 0);
    assert_int_equal(http_client_answer(client, &answer, &err), 0);
    assert_int_equal(answer.status, 101);
    int fd = http_client_detach(client, &early);
    assert_true(fd >= 0);
    raw_sends(f, fd, "x");
    struct sink sink = {.loop = f->loop, .fd = fd, .count = early.len};
    drain_socket(&sink);
    assert_int_equal(sink.count, BIG);
    close(fd);
    http_client_free(client);
}

static void test_tunnel(void **state)
{
    fixture_run(serve, NULL, tunnel_body, *state);
}

/* --- clients by hand --- */

static struct tls *shake(struct fixture *f, struct world *w, int fd)
{
    struct tls *tls = tls_new(w->client, fd, "cella.test");
    struct error err = {0};
    assert_non_null(tls);
    while (tls_handshake(tls) != 0) {
        if (errno != EAGAIN)
            fail_msg("%s", tls_problem(tls));
        assert_int_equal(co_wait_fd(f->loop, fd, tls_wants(tls), 10000, &err), 0);
    }
    return tls;
}

static void read_until_end(struct fixture *f, struct tls *tls, int fd, char *text, size_t size)
{
    struct error err = {0};
    size_t len = 0;
    ssize_t n;
    while ((n = tls_recv(tls, text + len, size - 1 - len)) != 0) {
        if (n > 0)
            len += (size_t)n;
        else if (errno != EAGAIN || co_wait_fd(f->loop, fd, EPOLLIN, 10000, &err) != 0)
            fail_msg("errno %d", errno);
    }
    text[len] = '\0';
}

/* All of a connection's requests in one record, the last of them at its very end; and bytes that
 * come one record each. */
static void records_body(struct fixture *f)
{
    struct world *w = world_of(f);
    char requests[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"
                      "GET /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for (int bytewise = 0; bytewise < 2; bytewise++) {
        int fd = raw_connect(f);
        struct tls *tls = shake(f, w, fd);
        size_t len = strlen(requests), step = bytewise ? 1 : len;
        for (size_t at = 0; at < len; at += step) {
            struct iovec iov = {.iov_base = requests + at, .iov_len = step};
            assert_int_equal(tls_send(tls, &iov, 1), step);
        }
        char got[8192], statuses[64];
        read_until_end(f, tls, fd, got, sizeof(got)); /* to its goodbye */
        statuses_of(got, statuses, sizeof(statuses));
        assert_string_equal(statuses, "200 200 200 ");
        tls_free(tls);
        close(fd);
    }
}

static void test_records(void **state)
{
    fixture_run(serve, NULL, records_body, *state);
}

/* --- those who shake no hands --- */

static void silent_body(struct fixture *f)
{
    world_of(f);
    static const char hello[] = "\x16\x03\x01\x02\x00\x01";
    int fd = raw_connect(f);
    raw_send(f, fd, hello, 6);
    free(raw_read_all(f, fd)); /* ends by itself */
    close(fd);
}

static void test_silent(void **state)
{
    const struct http_limits limits = {.header_timeout_ms = 100};
    fixture_run(serve, &limits, silent_body, *state);
}

static void garbage_body(struct fixture *f)
{
    struct world *w = world_of(f);
    static const char *const garbage[] = {
        "\x16GET / HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x00\x04\x01\x00\x00\x00",
        "\x16\x03\x01\xff\xff\x01\x00\x00\x00",
        "\x16\x16\x16\x16\x16\x16\x16\x16\x16\x16",
    };
    for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
        int fd = raw_connect(f);
        raw_send(f, fd, garbage[i], strlen(garbage[i]) + 1);
        shutdown(fd, SHUT_WR);
        free(raw_read_all(f, fd));
        close(fd);
    }
    struct http_client *client = client_of(f, w->client, "cella.test");
    expect_answer(client, &(struct http_call){.method = "GET", .target = "/on"}, "/on", 3);
    http_client_free(client);
}

static void test_garbage(void **state)
{
    fixture_run(serve, NULL, garbage_body, *state);
}

/* A server without a certificate takes it for bad HTTP. */
static void off_body(struct fixture *f)
{
    int fd = raw_connect(f);
    raw_sends(f, fd, "\x16\x03\x01 / HTTP/1.1\r\n\r\n");
    raw_expect(f, fd, "HTTP/1.1 400");
    close(fd);
}

static void test_off(void **state)
{
    fixture_run(serve, NULL, off_body, *state);
}

static void test_bad_pem(void **state)
{
    struct world *w = *state;
    struct tls_context *context = NULL;
    struct error err = {0};
    assert_int_equal(tls_context_server(slice_of("nothing"), &context, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "certificate"));
    assert_int_equal(tls_context_server(slice_of(w->ca), &context, &err), -1); /* no key */
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "key"));
    assert_int_equal(tls_context_client("nothing", &context, &err), -1);
    assert_null(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both),      cmocka_unit_test(test_belief),
        cmocka_unit_test(test_websocket), cmocka_unit_test(test_tunnel),
        cmocka_unit_test(test_records),   cmocka_unit_test(test_silent),
        cmocka_unit_test(test_garbage),   cmocka_unit_test(test_off),
        cmocka_unit_test(test_bad_pem),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
