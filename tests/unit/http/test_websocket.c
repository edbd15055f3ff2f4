/* SPDX-License-Identifier: Apache-2.0 */

/* WebSocket over sockets: both handshakes, both ends, two directions at once, and bad peers. */

#include "fixture.h"

#include "http/client.h"
#include "http/upgrade.h"
#include "http/websocket.h"
#include "loop/task.h"

enum { BIG = 900 * 1000, FLOOD = 2000, SLOW = 12 << 20 };

static const char *const protocols[] = {"best", "good", NULL};

/* --- the server's side: what to do is in the path --- */

static int echo(struct websocket *ws, struct error *err)
{
    struct ws_message message;
    int rc;
    while ((rc = websocket_read(ws, &message, err)) > 0)
        if (websocket_send(ws, message.text ? WS_TEXT : WS_BINARY, message.data.data,
                           message.data.len, err) != 0)
            return -1;
    return rc;
}

static void flood(void *arg)
{
    char text[64];
    for (int i = 0; i < FLOOD; i++) {
        int n = snprintf(text, sizeof(text), "line %d", i);
        if (websocket_send(arg, WS_TEXT, text, (size_t)n, NULL) != 0)
            return;
    }
}

/* Both directions at once: a flood out while what comes in is answered. */
static int echo_in_flood(struct http_exchange *x, struct websocket *ws, struct error *err)
{
    struct task out = {0};
    if (task_start(http_loop(x), &out, flood, ws, err) != 0)
        return -1;
    int rc = echo(ws, err);
    task_stop(&out);
    return rc;
}

static void close_soon(void *arg)
{
    websocket_close(arg, WS_CLOSE_POLICY, "enough", NULL);
}

/* The other direction ends it while this one reads. */
static int closes(struct http_exchange *x, struct websocket *ws, struct error *err)
{
    struct task out = {0};
    struct ws_message message;
    if (task_start(http_loop(x), &out, close_soon, ws, err) != 0)
        return -1;
    int rc = websocket_read(ws, &message, err);
    task_join(&out);
    assert_int_equal(websocket_send(ws, WS_TEXT, "x", 1, NULL), -1);
    return rc;
}

static int serve(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    const char *path = http_request(x)->path;
    struct websocket_options options = {.protocols = protocols};
    struct websocket *ws = NULL;
    if (websocket_accept(x, &options, &ws, err) != 0)
        return -1;
    int rc = strcmp(path, "/flood") == 0    ? echo_in_flood(x, ws, err)
             : strcmp(path, "/closes") == 0 ? closes(x, ws, err)
                                            : echo(ws, err);
    f->count = rc == 0 ? (int)websocket_peer_code(ws) : -1;
    websocket_free(ws);
    return 0; /* the peer was told */
}

/* --- our own client --- */

static struct websocket *open_ws(struct fixture *f, struct http_client **ret_client,
                                 const char *path)
{
    struct error err = {0};
    struct http_answer answer;
    struct websocket *ws = NULL;
    struct http_call call = {.target = path};
    struct websocket_options options = {.protocols = (const char *const[]){"good", NULL}};
    *ret_client = http_client_new(f->loop, f->address, "test", &err);
    if (websocket_connect(*ret_client, &call, &options, &ws, &answer, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(answer.status, 101);
    assert_non_null(ws);
    return ws;
}

static void close_ws(struct websocket *ws, struct http_client *client)
{
    websocket_free(ws);
    http_client_free(client);
}

static void expect(struct websocket *ws, bool text, const void *data, size_t len)
{
    struct error err = {0};
    struct ws_message message;
    if (websocket_read(ws, &message, &err) != 1)
        fail_msg("no message: %s", err.message);
    assert_int_equal(message.text, text);
    assert_int_equal(message.data.len, len);
    assert_memory_equal(message.data.data, data, len);
}

static void end(struct websocket *ws, struct fixture *f, unsigned code)
{
    struct ws_message message;
    struct error err = {0};
    if (websocket_read(ws, &message, &err) != 0)
        fail_msg("not the end: %s", err.message);
    assert_int_equal(websocket_peer_code(ws), code);
}

static void echoes(struct fixture *f)
{
    struct http_client *client;
    struct error err = {0};
    struct websocket *ws = open_ws(f, &client, "/echo");
    assert_string_equal(websocket_protocol(ws), "good");
    char *big = malloc(BIG);
    for (int i = 0; i < BIG; i++)
        big[i] = (char)(i * 31 >> 3);
    assert_int_equal(websocket_send(ws, WS_TEXT, "h\xc3\xa4", 3, &err), 0);
    expect(ws, true, "h\xc3\xa4", 3);
    assert_int_equal(websocket_send(ws, WS_BINARY, "", 0, &err), 0);
    expect(ws, false, "", 0);
    assert_int_equal(websocket_send(ws, WS_BINARY, big, BIG, &err), 0);
    expect(ws, false, big, BIG);
    free(big);
    assert_int_equal(websocket_close(ws, WS_CLOSE_NORMAL, "bye", &err), 0);
    assert_int_equal(websocket_close(ws, WS_CLOSE_NORMAL, "bye", &err), 0);
    end(ws, f, 1000);
    close_ws(ws, client);
}

static void test_echo(void **state)
{
    fixture_run(serve, NULL, echoes, NULL);
}

static void both_ways(struct fixture *f)
{
    struct http_client *client;
    struct error err = {0};
    struct websocket *ws = open_ws(f, &client, "/flood");
    int lines = 0, echoed = 0;
    for (int i = 0; i < 50; i++)
        assert_int_equal(websocket_send(ws, WS_BINARY, "ping me", 7, &err), 0);
    while (lines < FLOOD || echoed < 50) {
        struct ws_message message;
        if (websocket_read(ws, &message, &err) != 1)
            fail_msg("%s", err.message);
        char want[64];
        snprintf(want, sizeof(want), "line %d", lines);
        lines += message.text;
        echoed += !message.text;
        if (message.text)
            assert_memory_equal(message.data.data, want, message.data.len);
    }
    close_ws(ws, client);
}

static void test_both_ways(void **state)
{
    fixture_run(serve, NULL, both_ways, NULL);
}

static void server_closes(struct fixture *f)
{
    struct http_client *client;
    struct websocket *ws = open_ws(f, &client, "/closes");
    end(ws, f, 1008);
    close_ws(ws, client);
}

static void test_server_closes(void **state)
{
    fixture_run(serve, NULL, server_closes, NULL);
}

/* Shutting down does not wait for a WebSocket, and its peer is told. */
static void left_open(struct fixture *f)
{
    struct http_client *client;
    struct websocket *ws = open_ws(f, &client, "/echo");
    http_server_shutdown(f->server, 60000);
    end(ws, f, 1001);
    close_ws(ws, client);
}

static void test_shutdown(void **state)
{
    fixture_run(serve, NULL, left_open, NULL);
}

/* --- raw clients --- */

#define ASK(extra)                                                                                 \
    "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: "                \
    "WebSocket\r\n" extra "\r\n"
#define KEY     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"

static const struct {
    const char *request;
    const char *want; /* somewhere in the answer */
} handshakes[] = {
    {ASK(KEY VERSION), "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"},
    {ASK(KEY VERSION), "HTTP/1.1 101 Switching Protocols\r\n"},
    {ASK(KEY VERSION "Sec-WebSocket-Protocol: x, good, best\r\n"),
     "\r\nSec-WebSocket-Protocol: best\r\n"},
    {ASK(KEY VERSION "Sec-WebSocket-Protocol: x\r\nSec-WebSocket-Protocol: good\r\n"),
     "\r\nSec-WebSocket-Protocol: good\r\n"},
    {ASK(KEY), "\r\nSec-WebSocket-Version: 13\r\n"},
    {ASK(KEY), "HTTP/1.1 426 Upgrade Required\r\n"},
    {ASK(KEY "Sec-WebSocket-Version: 8\r\n"), "HTTP/1.1 426 "},
    {ASK(VERSION), "HTTP/1.1 400 "},
    {ASK(VERSION "Sec-WebSocket-Key: short\r\n"), "HTTP/1.1 400 "},
    {ASK(VERSION KEY KEY), "HTTP/1.1 400 "},
    {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n" KEY VERSION "\r\n", "HTTP/1.1 426 "},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n" KEY VERSION "\r\n",
     "\r\nUpgrade: websocket\r\n"},
    {"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" KEY VERSION
     "\r\n",
     "HTTP/1.1 426 "},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
     "Content-Length: 2\r\n" KEY VERSION "\r\nab",
     "HTTP/1.1 426 "},
    {"GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" KEY VERSION "\r\n",
     "HTTP/1.1 426 "},
};

static void shake(struct fixture *f)
{
    for (size_t i = 0; i < ARRAY_LEN(handshakes); i++) {
        int fd = raw_connect(f);
        raw_sends(f, fd, handshakes[i].request);
        raw_expect(f, fd, handshakes[i].want);
        close(fd);
    }
}

static void test_handshakes(void **state)
{
    fixture_run(serve, NULL, shake, NULL);
}

#define BYTES(text) text, sizeof(text) - 1
#define M           "\0\0\0\0"

static const struct {
    const char *bytes; /* right behind the handshake */
    size_t len;
    const char *want; /* what comes back after it, to the connection's end */
    size_t want_len;
} talks[] = {
    {BYTES("\x81\x82" M "hi\x88\x82" M "\x03\xe8"), BYTES("\x81\x02hi\x88\x02\x03\xe8")},
    {BYTES("\x01\x81" M "h\x89\x81" M "p\x80\x81" M "i\x88\x80" M),
     BYTES("\x8a\x01p\x81\x02hi\x88\x02\x03\xe8")},
    {BYTES("\x8a\x80" M "\x88\x82" M "\x0b\xb8"), BYTES("\x88\x02\x0b\xb8")},
    {BYTES("\x81\x02hi"), BYTES("\x88\x18\x03\xea"
                                "a frame without a mask")},
    {BYTES("\x81\x81" M "\xff"), BYTES("\x88\x18\x03\xef"
                                       "text that is not UTF-8")},
    {BYTES("\x82\xff\0\0\0\0\0\x20\0\0" M), BYTES("\x88\x1d\x03\xf1"
                                                  "a message that is too large")},
    {BYTES("\x88\x81" M "\x03"), BYTES("\x88\x13\x03\xea"
                                       "a malformed Close")},
};

static void talk(struct fixture *f)
{
    for (size_t i = 0; i < ARRAY_LEN(talks); i++) {
        struct error err = {0};
        struct buf got = BUF_INIT(4096);
        char request[1024], piece[256], *end = NULL;
        int len = snprintf(request, sizeof(request), "%s", ASK(KEY VERSION));
        memcpy(request + len, talks[i].bytes, talks[i].len);
        int fd = raw_connect(f);
        raw_send(f, fd, request, (size_t)len + talks[i].len);
        ssize_t n;
        while ((n = net_read(f->loop, fd, piece, sizeof(piece), 10000, &err)) > 0)
            buf_add(&got, piece, (size_t)n);
        end = strstr(got.data, "\r\n\r\n");
        assert_non_null(end);
        size_t rest = got.len - (size_t)(end + 4 - got.data);
        if (rest != talks[i].want_len || memcmp(end + 4, talks[i].want, rest) != 0)
            fail_msg("talk %zu: %zu bytes, %s", i, rest, end + 4);
        buf_release(&got);
        close(fd);
    }
}

static void test_talks(void **state)
{
    fixture_run(serve, NULL, talk, NULL);
}

/* A client that goes without a word ends the handler. */
static void vanish(struct fixture *f)
{
    f->count = 0;
    int fd = raw_connect(f);
    raw_sends(f, fd, ASK(KEY VERSION));
    raw_expect(f, fd, "\r\n\r\n");
    close(fd);
    for (int i = 0; i < 1000 && f->count == 0; i++)
        co_sleep(f->loop, 10, NULL);
    assert_int_equal(f->count, -1);
}

static void test_vanish(void **state)
{
    fixture_run(serve, NULL, vanish, NULL);
}

/* --- silence --- */

static int serve_impatiently(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    struct websocket_options options = {.ping_ms = 20};
    struct websocket *ws = NULL;
    struct error why = {0};
    if (websocket_accept(x, &options, &ws, err) != 0)
        return -1;
    f->count = echo(ws, &why) < 0 ? (int)why.code : -1;
    websocket_free(ws);
    return 0;
}

/* A peer that does not answer a ping is dead. */
static void keep_silent(struct fixture *f)
{
    f->count = 0;
    int fd = raw_connect(f);
    raw_sends(f, fd, ASK(KEY VERSION));
    raw_expect(f, fd, "\x89"); /* with nothing behind it: a ping of length 0 */
    for (int i = 0; i < 1000 && f->count == 0; i++)
        co_sleep(f->loop, 10, NULL);
    assert_int_equal(f->count, ERROR_TIMEOUT);
    close(fd);
}

static void test_silence(void **state)
{
    fixture_run(serve_impatiently, NULL, keep_silent, NULL);
}

static void send_slowly_read(void *arg)
{
    char *data = calloc(1, SLOW);
    websocket_send(arg, WS_BINARY, data, SLOW, NULL);
    free(data);
}

static int serve_slow_reader(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    struct websocket_options options = {.ping_ms = 100};
    struct websocket *ws = NULL;
    struct error why = {0};
    struct task out = {0};
    if (websocket_accept(x, &options, &ws, err) != 0)
        return -1;
    assert_int_equal(task_start(http_loop(x), &out, send_slowly_read, ws, err), 0);
    f->count = echo(ws, &why) < 0 ? (int)why.code : -1;
    task_stop(&out);
    websocket_free(ws);
    return 0;
}

/* One that reads slowly and says nothing is alive: it would find a ping behind all the rest. */
static void read_slowly(struct fixture *f)
{
    char piece[16384];
    int small = 4 * sizeof(piece);
    size_t left = SLOW;
    f->count = 0;
    int fd = raw_connect(f);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    raw_sends(f, fd, ASK(KEY VERSION));
    raw_expect(f, fd, "\r\n\r\n");
    while (left > sizeof(piece)) {
        ssize_t n = net_read(f->loop, fd, piece, sizeof(piece), 10000, NULL);
        assert_true(n > 0);
        assert_int_equal(f->count, 0);
        left -= (size_t)n;
        co_sleep(f->loop, 1, NULL);
    }
    close(fd);
    for (int i = 0; i < 1000 && f->count == 0; i++)
        co_sleep(f->loop, 10, NULL);
    assert_int_equal(f->count, ERROR_CANCELLED);
}

static void test_slow_reader(void **state)
{
    fixture_run(serve_slow_reader, NULL, read_slowly, NULL);
}

/* --- a plain upgrade --- */

static int serve_raw(struct http_exchange *x, void *ctx, struct error *err)
{
    int fd;
    struct slice early;
    char piece[64];
    if (http_upgrade(x, "tcp", &fd, &early, err) != 0)
        return -1;
    struct loop *loop = http_loop(x);
    if (net_write(loop, fd, early.data, early.len, 1000, err) != 0)
        return -1;
    ssize_t n;
    while ((n = net_read(loop, fd, piece, sizeof(piece), 10000, err)) > 0)
        if (net_write(loop, fd, piece, (size_t)n, 1000, err) != 0)
            return -1;
    return n < 0 ? -1 : 0;
}

static void upgrade_raw(struct fixture *f)
{
    int fd = raw_connect(f);
    raw_sends(f, fd,
              "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nearly ");
    raw_expect(f, fd, "early ");
    raw_sends(f, fd, "late");
    shutdown(fd, SHUT_WR);
    char *rest = raw_read_all(f, fd);
    assert_string_equal(rest, "late");
    free(rest);
    close(fd);
    fd = raw_connect(f);
    raw_sends(f, fd, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    raw_expect(f, fd, "UPGRADE_REQUIRED");
    close(fd);
}

static void test_upgrade(void **state)
{
    fixture_run(serve_raw, NULL, upgrade_raw, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo),          cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_server_closes), cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_handshakes),    cmocka_unit_test(test_talks),
        cmocka_unit_test(test_silence),       cmocka_unit_test(test_vanish),
        cmocka_unit_test(test_upgrade),       cmocka_unit_test(test_slow_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
