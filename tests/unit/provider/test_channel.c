/* SPDX-License-Identifier: Apache-2.0 */

/* A channel against a well-behaved other end, and against hostile ones. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/limits.h"
#include "loop/co.h"
#include "loop/net.h"
#include "provider/channel.h"
#include "wire/messages.h"

/* One test: what the other end sends after it has read the request, and what the caller sees. */
struct play {
    struct loop *loop;
    int peer_fd;
    struct channel *channel;
    struct buf script; /* sent as it is; empty: the connection is closed */
    bool list;
    int items;
    int rc;
    struct error err;
    struct agent_about about;
    bool closed;
    int questions; /* that are asked instead; heard: how many were answered, or not */
    int heard;
    bool reading; /* the other end, all of them */
    bool tell;    /* the other end is told of calls that are given up … */
    struct frame_header told;
};

static void on_closed(void *ctx)
{
    ((struct play *)ctx)->closed = true;
}

static int on_item(void *ctx, const void *item, struct error *err)
{
    ((struct play *)ctx)->items++;
    return 0;
}

static void peer(void *arg)
{
    struct play *play = arg;
    unsigned char header[FRAME_HEADER_SIZE];
    struct error err;
    play->reading = play->questions > 1;
    if (net_read_whole(play->loop, play->peer_fd, header, sizeof(header), 5000, &err) < 0)
        return;
    if (play->script.len > 0)
        net_write(play->loop, play->peer_fd, play->script.data, play->script.len, 5000, &err);
    else
        shutdown(play->peer_fd, SHUT_RDWR);
    /* Many questions do not fit into a socket's buffer. */
    char piece[4096];
    while (play->questions > 1 &&
           net_read(play->loop, play->peer_fd, piece, sizeof(piece), 5000, &err) > 0)
        continue;
    play->reading = false;
    if (play->channel == NULL)
        loop_stop(play->loop);
}

static void hear(void *ctx, const void *answer, const struct error *why)
{
    struct play *play = ctx;
    play->heard++;
    play->rc = answer == NULL ? -1 : 0;
    if (answer != NULL)
        play->about = *(const struct agent_about *)answer;
    else
        play->err = *why;
    loop_stop(play->loop);
}

static void caller(void *arg)
{
    struct play *play = arg;
    for (int i = 0; i < play->questions; i++)
        channel_ask(play->channel, &agent_hello_schema, NULL, &agent_about_schema, hear, play);
    if (play->questions > 0)
        return;
    struct arena *arena = arena_new();
    if (play->list)
        play->rc = channel_list(play->channel, &agent_list_schema, NULL, &agent_process_schema,
                                arena, 3, on_item, play, 1000, &play->err);
    else
        play->rc = channel_call(play->channel, &agent_hello_schema, NULL, &agent_about_schema,
                                arena, &play->about, 1000, &play->err);
    arena_free(arena);
    loop_stop(play->loop);
}

static void run(struct play *play)
{
    int fds[2];
    struct channel_events events = {
        .closed = on_closed, .cancel = play->tell ? &agent_cancel_schema : NULL, .ctx = play};
    play->loop = loop_new(&play->err);
    assert_non_null(play->loop);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    play->peer_fd = fds[1];
    play->channel = channel_new(play->loop, fds[0], &events, &play->err);
    assert_non_null(play->channel);
    assert_int_equal(co_spawn(play->loop, peer, play, NULL, &play->err), 0);
    assert_int_equal(co_spawn(play->loop, caller, play, NULL, &play->err), 0);
    assert_int_equal(loop_run(play->loop, &play->err), 0);
    unsigned char header[FRAME_HEADER_SIZE];
    if (play->tell) {
        assert_int_equal(recv(play->peer_fd, header, sizeof(header), MSG_DONTWAIT), sizeof(header));
        assert_int_equal(frame_header_decode(header, &play->told, NULL), 0);
    }
    channel_free(play->channel);
    play->channel = NULL;
    if (play->reading)
        assert_int_equal(loop_run(play->loop, &play->err), 0);
    close(play->peer_fd);
    loop_free(play->loop);
    buf_release(&play->script);
}

static void test_answer(void **state)
{
    struct play play = {.script = BUF_INIT(4096)};
    wire_encode(&play.script, &agent_about_schema, 1,
                &(struct agent_about){.version = 7, .started_ms = 9});
    run(&play);
    assert_int_equal(play.rc, 0);
    assert_int_equal(play.about.version, 7);
    assert_false(play.closed);
}

static void test_error_becomes_error(void **state)
{
    struct play play = {.script = BUF_INIT(4096)};
    struct error sent;
    error_set(&sent, ERROR_PROCESS_NOT_FOUND, "no such process");
    wire_encode_error(&play.script, 1, &sent);
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_int_equal(play.err.code, ERROR_PROCESS_NOT_FOUND);
    assert_string_equal(play.err.message, "no such process");
}

static void test_wrong_type(void **state)
{
    struct play play = {.script = BUF_INIT(4096)};
    wire_encode(&play.script, &wire_ok_schema, 1, NULL);
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_int_equal(play.err.code, ERROR_UNAVAILABLE);
}

static void test_closed(void **state)
{
    struct play play = {.script = BUF_INIT(4096)};
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_int_equal(play.err.code, ERROR_UNAVAILABLE);
    assert_true(play.closed);
}

static void test_answer_to_nothing_closes(void **state)
{
    struct play play = {.script = BUF_INIT(4096)};
    wire_encode(&play.script, &wire_ok_schema, 4711, NULL);
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_true(play.closed);
}

static void test_event_nobody_wants_closes(void **state)
{
    struct play play = {.script = BUF_INIT(4096)};
    wire_encode(&play.script, &wire_ok_schema, 0, NULL);
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_true(play.closed);
}

static void test_oversized_frame_closes(void **state)
{
    struct play play = {.script = BUF_INIT(4096)};
    unsigned char header[FRAME_HEADER_SIZE];
    frame_header_encode(header, &(struct frame_header){WIRE_PAYLOAD_MAX + 1, AGENT_ABOUT, 1});
    buf_add(&play.script, header, sizeof(header));
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_true(play.closed);
}

static void add_process(struct buf *script)
{
    wire_encode(script, &agent_process_schema, 1,
                &(struct agent_process){.pid = 1, .command = "true", .cwd = "/", .user = "root"});
}

static void test_list(void **state)
{
    struct play play = {.script = BUF_INIT(4096), .list = true};
    add_process(&play.script);
    add_process(&play.script);
    wire_encode(&play.script, &wire_ok_schema, 1, NULL);
    run(&play);
    assert_int_equal(play.rc, 0);
    assert_int_equal(play.items, 2);
}

static void test_endless_list_is_cut(void **state)
{
    struct play play = {.script = BUF_INIT(65536), .list = true};
    for (int i = 0; i < 100; i++)
        add_process(&play.script);
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_int_equal(play.err.code, ERROR_LIMIT_EXCEEDED);
    assert_true(play.closed);
}

/* An answer that never comes is given up, and its late arrival hurts nobody. */
static void test_timeout(void **state)
{
    struct play play = {.script = BUF_INIT(4096)};
    buf_add(&play.script, "\0\0\0", 3); /* a cut-off header */
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_int_equal(play.err.code, ERROR_TIMEOUT);
}

/* Who gives a call up says so, where the other end wants to know; and the channel goes on. */
static void test_given_up_is_told(void **state)
{
    struct play play = {.script = BUF_INIT(4096), .tell = true};
    buf_add(&play.script, "\0\0\0", 3);
    run(&play);
    assert_int_equal(play.err.code, ERROR_TIMEOUT);
    assert_int_equal(play.told.type, AGENT_CANCEL);
    assert_int_equal(play.told.id, 1);
    assert_int_equal(play.told.length, 0);
    assert_false(play.closed);
}

static void test_question(void **state)
{
    struct play play = {.script = BUF_INIT(4096), .questions = 1};
    wire_encode(&play.script, &agent_about_schema, 1,
                &(struct agent_about){.version = 7, .started_ms = 9});
    run(&play);
    assert_int_equal(play.rc, 0);
    assert_int_equal(play.heard, 1);
    assert_int_equal(play.about.version, 7);
}

static void test_question_that_fails(void **state)
{
    struct error sent;
    error_set(&sent, ERROR_PROCESS_NOT_FOUND, "no such process");
    struct play play = {.script = BUF_INIT(4096), .questions = 1};
    wire_encode_error(&play.script, 1, &sent);
    run(&play);
    assert_int_equal(play.err.code, ERROR_PROCESS_NOT_FOUND);

    struct play other = {.script = BUF_INIT(4096), .questions = 1};
    wire_encode(&other.script, &wire_ok_schema, 1, NULL);
    run(&other);
    assert_int_equal(other.err.code, ERROR_UNAVAILABLE);
    assert_int_equal(other.heard, 1);
    assert_false(other.closed);
}

static void test_questions_end_with_the_channel(void **state)
{
    struct play play = {.script = BUF_INIT(4096), .questions = 3};
    run(&play);
    assert_int_equal(play.heard, 3);
    assert_int_equal(play.err.code, ERROR_UNAVAILABLE);
    assert_true(play.closed);
}

/* One too many is told at once; the others when the channel goes. */
static void test_too_many_questions(void **state)
{
    struct play play = {.script = BUF_INIT(4096), .questions = CHANNEL_QUESTIONS_MAX + 1};
    buf_add(&play.script, "\0\0\0", 3);
    run(&play);
    assert_int_equal(play.heard, CHANNEL_QUESTIONS_MAX + 1);
    assert_int_equal(play.err.code, ERROR_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_error_becomes_error),
        cmocka_unit_test(test_wrong_type),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_answer_to_nothing_closes),
        cmocka_unit_test(test_event_nobody_wants_closes),
        cmocka_unit_test(test_oversized_frame_closes),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_endless_list_is_cut),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_given_up_is_told),
        cmocka_unit_test(test_question),
        cmocka_unit_test(test_question_that_fails),
        cmocka_unit_test(test_questions_end_with_the_channel),
        cmocka_unit_test(test_too_many_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
