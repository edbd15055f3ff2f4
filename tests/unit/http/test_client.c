/* SPDX-License-Identifier: Apache-2.0 */

/* The client against our own server, and against a scripted one that misbehaves. */

#include "fixture.h"

#include <sys/epoll.h>

#include "http/client.h"
#include "loop/task.h"

enum { BIG = 5 << 20 };

static int serve(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    f->count++;
    const char *path = http_request(x)->path;
    if (strcmp(path, "/chunked") == 0) {
        if (http_reply_start(x, 200, NULL, -1, err) != 0)
            return -1;
        for (int i = 0; i < 3; i++)
            if (http_reply_write(x, "hello ", 6, err) != 0)
                return -1;
        return 0;
    }
    if (strcmp(path, "/refuse") == 0)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "too much");
    if (strcmp(path, "/empty") == 0)
        return http_reply(x, 204, NULL, NULL, 0, err);
    struct slice body;
    if (http_body_all(x, 64 << 20, &body, err) != 0)
        return -1;
    const char *echo = http_header(x, "X-Echo");
    http_set_header(x, "X-Back", "%s", echo == NULL ? "" : echo);
    return http_reply(x, 200, "application/octet-stream", body.data, body.len, err);
}

static struct http_client *client_new(struct fixture *f)
{
    struct error err;
    struct http_client *client = http_client_new(f->loop, f->address, "test", &err);
    assert_non_null(client);
    return client;
}

static void call(struct http_client *client, const struct http_call *call, int status,
                 const char *body)
{
    struct error err = {0};
    struct http_answer answer = {0};
    char *text = NULL;
    size_t len = 0;
    if (http_client_send(client, call, &err) != 0 ||
        http_client_answer(client, &answer, &err) != 0 ||
        http_client_read_all(client, 1 << 20, &text, &len, &err) != 0)
        fail_msg("%s %s: %s", call->method, call->target, err.message);
    assert_int_equal(answer.status, status);
    if (body != NULL) {
        assert_string_equal(text, body);
        assert_int_equal(len, strlen(body));
    }
    free(text);
}

static void check_calls(struct fixture *f)
{
    struct error err = {0};
    struct http_client *client = client_new(f);
    for (int i = 0; i < 3; i++) {
        call(client, &(struct http_call){.method = "GET", .target = "/"}, 200, "");
        call(client, &(struct http_call){.method = "HEAD", .target = "/chunked"}, 200, "");
        call(client, &(struct http_call){.method = "GET", .target = "/chunked"}, 200,
             "hello hello hello ");
        call(client, &(struct http_call){.method = "GET", .target = "/empty"}, 204, "");
        call(client, &(struct http_call){.method = "POST", .target = "/", .body = slice_of("abc")},
             200, "abc");
        call(client, &(struct http_call){.method = "GET", .target = "/refuse"}, 413, NULL);
    }
    struct http_header header = {"X-Echo", "ping"};
    struct http_call with_field = {
        .method = "GET", .target = "/", .headers = &header, .header_count = 1};
    struct http_answer answer;
    assert_int_equal(http_client_send(client, &with_field, &err), 0);
    assert_int_equal(http_client_answer(client, &answer, &err), 0);
    assert_string_equal(http_answer_header(&answer, "x-back"), "ping");
    assert_null(http_answer_header(&answer, "x-none"));
    assert_int_equal(answer.content_length, 0);
    http_client_free(client);
}

static void calls_and_answers(void **state)
{
    fixture_run(serve, NULL, check_calls, NULL);
}

static void check_bodies(struct fixture *f)
{
    struct error err = {0};
    struct http_client *client = client_new(f);
    char *data = malloc(BIG);
    for (size_t i = 0; i < BIG; i++)
        data[i] = (char)(i * 7 + (i >> 9));
    for (int chunked = 0; chunked <= 1; chunked++) {
        struct http_call put = {
            .method = "PUT", .target = "/", .content_length = chunked ? -1 : BIG};
        struct http_answer answer;
        assert_int_equal(http_client_send(client, &put, &err), 0);
        for (size_t at = 0; at < BIG; at += 100000) {
            size_t n = BIG - at < 100000 ? BIG - at : 100000;
            assert_int_equal(http_client_write(client, data + at, n, &err), 0);
        }
        if (http_client_answer(client, &answer, &err) != 0)
            fail_msg("%s", err.message);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.content_length, BIG);
        char *back;
        size_t len;
        assert_int_equal(http_client_read_all(client, BIG, &back, &len, &err), 0);
        assert_int_equal(len, BIG);
        assert_memory_equal(back, data, BIG);
        free(back);
    }
    /* an answer that is larger than the caller can take */
    struct http_call whole = {.method = "POST", .target = "/", .body = {data, BIG}};
    struct http_answer answer;
    char *back;
    assert_int_equal(http_client_send(client, &whole, &err), 0);
    assert_int_equal(http_client_answer(client, &answer, &err), 0);
    assert_int_equal(http_client_read_all(client, 1000, &back, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_PAYLOAD_TOO_LARGE);
    /* and the client is usable afterwards: the rest is left behind with the connection */
    call(client, &(struct http_call){.method = "GET", .target = "/"}, 200, "");
    http_client_free(client);
    free(data);
}

static void bodies_both_ways(void **state)
{
    fixture_run(serve, NULL, check_bodies, NULL);
}

/* The server answers before it has the body, and stops reading. */
static void check_refusal(struct fixture *f)
{
    struct error err = {0};
    struct http_client *client = client_new(f);
    char *data = calloc(1, 1 << 20);
    struct http_call put = {
        .method = "PUT", .target = "/refuse", .content_length = (int64_t)64 << 20};
    struct http_answer answer;
    assert_int_equal(http_client_send(client, &put, &err), 0);
    for (int i = 0; i < 64; i++)
        assert_int_equal(http_client_write(client, data, 1 << 20, &err), 0);
    if (http_client_answer(client, &answer, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(answer.status, 413);
    call(client, &(struct http_call){.method = "GET", .target = "/"}, 200, "");
    http_client_free(client);
    free(data);
}

static void early_answers_are_heard(void **state)
{
    fixture_run(serve, NULL, check_refusal, NULL);
}

static void check_bad_calls(struct fixture *f)
{
    struct error err;
    struct http_client *client = client_new(f);
    struct http_header evil = {"X", "a\r\nY: b"};
    struct http_call calls[] = {
        {.method = "GET", .target = "/ HTTP/1.1\r\nX: y"},
        {.method = "GET", .target = ""},
        {.method = "GET", .target = "/", .headers = &evil, .header_count = 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        assert_int_equal(http_client_send(client, &calls[i], &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
    assert_int_equal(f->count, 0);
    http_client_free(client);
}

static void line_ends_are_refused(void **state)
{
    fixture_run(serve, NULL, check_bad_calls, NULL);
}

/* --- a connection that the server closed meanwhile --- */

static void check_kept(struct fixture *f)
{
    struct error err;
    struct http_client *client = client_new(f);
    for (int i = 0; i < 3; i++) {
        call(client, &(struct http_call){.method = "POST", .target = "/", .body = slice_of("abc")},
             200, "abc");
        assert_int_equal(co_sleep(f->loop, 40, &err), 0); /* longer than the server waits */
    }
    http_client_free(client);
}

static void closed_connection_is_opened_again(void **state)
{
    const struct http_limits limits = {.idle_timeout_ms = 10};
    fixture_run(serve, &limits, check_kept, NULL);
}

/* --- a scripted server --- */

struct script {
    struct loop *loop;
    int listen_fd;
    const char *const *answers; /* one per connection, then it closes; NULL at the end */
    int connections;
};

static void script_main(void *arg)
{
    struct script *s = arg;
    struct error err;
    char request[4096];
    for (; *s->answers != NULL; s->answers++) {
        assert_int_equal(co_wait_fd(s->loop, s->listen_fd, EPOLLIN, 5000, &err), 0);
        _cleanup_fd_ int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        assert_true(fd >= 0);
        s->connections++;
        const char *answer = *s->answers;
        while (*answer != '\0') { /* parts end in '|': one per request */
            size_t len = strcspn(answer, "|");
            assert_true(net_read(s->loop, fd, request, sizeof(request), 5000, &err) > 0);
            assert_int_equal(net_write(s->loop, fd, answer, len, 5000, &err), 0);
            answer += len;
            answer += *answer == '|';
        }
        if (**s->answers == '\0' || (*s->answers)[strlen(*s->answers) - 1] == '|')
            assert_true(net_read(s->loop, fd, request, sizeof(request), 5000, &err) > 0);
    }
}

static struct http_client *scripted(struct fixture *f, struct script *s, const char *const *answers)
{
    struct error err;
    uint16_t port;
    char address[64];
    *s = (struct script){.loop = f->loop, .answers = answers};
    assert_int_equal(net_listen("127.0.0.1:0", 8, &s->listen_fd, &port, &err), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    assert_int_equal(co_spawn(f->loop, script_main, s, NULL, &err), 0);
    struct http_client *client = http_client_new(f->loop, address, "h", &err);
    assert_non_null(client);
    return client;
}

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void check_scripts(struct fixture *f)
{
    struct script s;
    struct error err;
    struct http_answer answer;
    const struct http_call get = {.method = "GET", .target = "/", .timeout_ms = 3000};
    const struct http_call post = {
        .method = "POST", .target = "/", .body = {"x", 1}, .timeout_ms = 3000};

    /* 1xx answers are passed over; without a length the body goes to the end */
    static const char *const kinds[] = {
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"
        "HTTP/1.1 200 OK\r\n\r\nto the end",
        "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nten", NULL};
    struct http_client *client = scripted(f, &s, kinds);
    call(client, &get, 200, "to the end");
    call(client, &get, 200, "ten");
    assert_int_equal(s.connections, 2);
    http_client_free(client);
    close(s.listen_fd);

    /* the second request meets a server that just closed: a GET is sent again, a POST is not */
    static const char *const flaky[] = {ANSWER "|", ANSWER, NULL};
    client = scripted(f, &s, flaky);
    call(client, &get, 200, "ok");
    call(client, &get, 200, "ok");
    assert_int_equal(s.connections, 2);
    http_client_free(client);
    close(s.listen_fd);
    static const char *const flaky_post[] = {ANSWER "|", NULL};
    client = scripted(f, &s, flaky_post);
    call(client, &post, 200, "ok");
    assert_int_equal(http_client_send(client, &post, &err), 0);
    assert_int_equal(http_client_answer(client, &answer, &err), -1);
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
    assert_int_equal(s.connections, 1);
    http_client_free(client);
    close(s.listen_fd);

    /* broken answers */
    static const char *const broken[] = {
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nx",
        "junk\r\n\r\n",
        "HTTP",
        NULL};
    client = scripted(f, &s, broken);
    for (size_t i = 0; broken[i] != NULL; i++) {
        char *body;
        int rc = http_client_send(client, &post, &err);
        if (rc == 0)
            rc = http_client_answer(client, &answer, &err);
        if (rc == 0)
            rc = http_client_read_all(client, 100, &body, NULL, &err);
        assert_int_equal(rc, -1);
        assert_true(err.code == ERROR_INVALID_HTTP || err.code == ERROR_UNAVAILABLE);
    }
    http_client_free(client);
    close(s.listen_fd);
}

static void odd_servers(void **state)
{
    fixture_run(serve, NULL, check_scripts, NULL);
}

/* --- in duplex, and forwarding --- */

static int echo_as_it_comes(struct http_exchange *x, void *ctx, struct error *err)
{
    char piece[4096];
    ssize_t n;
    if (http_reply_start(x, 200, NULL, -1, err) != 0)
        return -1;
    while ((n = http_body_read(x, piece, sizeof(piece), err)) > 0)
        if (http_reply_write(x, piece, (size_t)n, err) != 0)
            return -1;
    return n < 0 ? -1 : 0;
}

struct duplex {
    struct fixture *f;
    struct http_client *client;
    bool heard; /* the answer to the first part has come */
    struct co_cond hear;
};

static void write_in_parts(void *arg)
{
    struct duplex *d = arg;
    struct error err;
    assert_int_equal(http_client_write(d->client, "first ", 6, &err), 0);
    while (!d->heard)
        assert_int_equal(co_cond_wait(d->f->loop, &d->hear, 10000, &err), 0);
    assert_int_equal(http_client_write(d->client, "second", 6, &err), 0);
    assert_int_equal(http_client_end(d->client, &err), 0);
}

static void duplex_body(struct fixture *f)
{
    struct error err = {0};
    struct http_answer answer;
    struct task writer = {0};
    int fd = raw_connect(f);
    struct duplex d = {.f = f, .client = http_client_on(f->loop, fd, "test", NULL, NULL, &err)};
    struct http_call asked = {
        .method = "POST", .target = "/", .content_length = -1, .duplex = true};
    assert_int_equal(http_client_send(d.client, &asked, &err), 0);
    assert_false(http_client_is_reusable(d.client));
    assert_int_equal(task_start(f->loop, &writer, write_in_parts, &d, &err), 0);
    assert_int_equal(http_client_answer(d.client, &answer, &err), 0);
    char got[32] = "";
    size_t len = 0;
    ssize_t n;
    while ((n = http_client_read(d.client, got + len, sizeof(got) - 1 - len, &err)) > 0) {
        len += (size_t)n;
        d.heard = true;
        co_cond_wake_all(&d.hear);
    }
    task_join(&writer);
    assert_string_equal(got, "first second");
    assert_true(http_client_is_reusable(d.client));
    http_client_free(d.client);
    close(fd); /* ours all the time */
}

static void bodies_in_duplex(void **state)
{
    fixture_run(echo_as_it_comes, NULL, duplex_body, NULL);
}

/* /forward asks /chunked, /length or /close of the same server, and passes the answer on. */
static int forward(struct http_exchange *x, void *ctx, struct error *err)
{
    struct fixture *f = ctx;
    const char *path = http_request(x)->path;
    enum { MUCH = 300000 };
    char *big = arena_alloc(http_arena(x), MUCH);
    memset(big, 'x', MUCH);
    if (strcmp(path, "/length") == 0)
        return http_reply(x, 200, NULL, big, MUCH, err);
    if (strcmp(path, "/chunked") == 0 || strcmp(path, "/close") == 0) {
        if (http_reply_start(x, 200, NULL, -1, err) != 0)
            return -1;
        for (int i = 1; i < MUCH; i *= 3)
            if (http_reply_write(x, big, (size_t)i, err) != 0)
                return -1;
        return 0;
    }
    int fd = raw_connect(f);
    struct http_client *client = http_client_on(f->loop, fd, "test", NULL, NULL, err);
    struct http_call asked = {.method = "GET", .target = path + strlen("/forward")};
    struct http_answer answer;
    uint64_t moved = 1;
    int rc = http_client_send(client, &asked, err);
    if (rc == 0)
        rc = http_client_answer(client, &answer, err);
    if (rc == 0)
        rc = http_reply_start(x, answer.status, NULL, answer.content_length, err);
    while (rc == 0 && moved > 0)
        rc = http_client_forward(client, x, &moved, err);
    if (rc == 0)
        assert_true(http_client_is_reusable(client));
    http_client_free(client);
    close(fd);
    return rc;
}

static void forward_body(struct fixture *f)
{
    struct http_client *client = client_new(f);
    static const struct {
        const char *target;
        size_t want;
    } cases[] = {{"/forward/length", 300000}, {"/forward/chunked", 265720}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        struct http_call asked = {.method = "GET", .target = cases[i].target};
        struct http_answer answer;
        char *text = NULL;
        size_t len = 0;
        assert_int_equal(http_client_send(client, &asked, &err), 0);
        assert_int_equal(http_client_answer(client, &answer, &err), 0);
        assert_int_equal(http_client_read_all(client, 1 << 20, &text, &len, &err), 0);
        assert_int_equal(len, cases[i].want);
        free(text);
    }
    http_client_free(client);
}

static void answers_are_forwarded(void **state)
{
    fixture_run(forward, NULL, forward_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_and_answers),
        cmocka_unit_test(bodies_both_ways),
        cmocka_unit_test(early_answers_are_heard),
        cmocka_unit_test(line_ends_are_refused),
        cmocka_unit_test(closed_connection_is_opened_again),
        cmocka_unit_test(odd_servers),
        cmocka_unit_test(bodies_in_duplex),
        cmocka_unit_test(answers_are_forwarded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
