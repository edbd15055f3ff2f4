/* SPDX-License-Identifier: Apache-2.0 */

/* Following the output of a process whose agent says whatever it likes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/co.h"
#include "loop/net.h"
#include "sandbox/process_output.h"
#include "sandbox/state.h"

struct play {
    struct provider provider; /* first: the provider is the play */
    struct sandboxes sandboxes;
    struct buf script; /* what the agent sends, whatever it is asked */
    size_t piece;      /* so many bytes at a time */
    int agent_fd;
    char out[256], errors[256];
    uint64_t dropped, offset;
    int rc; /* 0: the end was reached */
    struct error err;
};

static int connect_agent(struct provider *p, const char *id, int *ret_fd, struct error *err)
{
    struct play *play = container_of(p, struct play, provider);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    play->agent_fd = fds[1];
    *ret_fd = fds[0];
    return 0;
}

static const struct provider_ops ops = {.name = "play", .connect = connect_agent};

static void agent(void *arg)
{
    struct play *play = arg;
    char request[512];
    struct error err;
    if (net_read(play->sandboxes.loop, play->agent_fd, request, sizeof(request), 5000, &err) <= 0)
        return;
    for (size_t at = 0; at < play->script.len; at += play->piece) {
        size_t left = play->script.len - at;
        size_t len = left < play->piece ? left : play->piece;
        if (net_write(play->sandboxes.loop, play->agent_fd, play->script.data + at, len, 5000,
                      &err) < 0)
            break;
        co_sleep(play->sandboxes.loop, 0, &err);
    }
    shutdown(play->agent_fd, SHUT_RDWR);
}

/* Waits until there is a connection to play the agent on. */
static void agent_when_connected(void *arg)
{
    struct play *play = arg;
    struct error err;
    while (play->agent_fd < 0)
        if (co_sleep(play->sandboxes.loop, 1, &err) < 0)
            return;
    agent(play);
}

static void reader(void *arg)
{
    struct play *play = arg;
    struct arena *arena = arena_new();
    struct process_output *output = NULL;
    struct agent_process process;
    struct output_event event = {.kind = OUTPUT_IDLE};
    play->rc = process_output_follow(&play->sandboxes, "default", "box", "web", 100, 0, arena,
                                     &process, &output, &play->err);
    while (play->rc == 0 && event.kind != OUTPUT_END) {
        play->rc = process_output_next(output, 5000, arena, &event, &play->err);
        if (play->rc < 0)
            break;
        if (event.kind == OUTPUT_DATA)
            strncat(event.stream == LOG_STDOUT ? play->out : play->errors, event.data.data,
                    event.data.len);
        if (event.kind == OUTPUT_DROPPED)
            play->dropped += event.dropped;
        play->offset = event.offset;
    }
    process_output_end(output);
    arena_free(arena);
    loop_stop(play->sandboxes.loop);
}

static void run(struct play *play)
{
    static const struct store_sandbox row = {.id = "id",
                                             .workspace = "default",
                                             .name = "box",
                                             .status = "running",
                                             .image = "host",
                                             .cpu = "1",
                                             .memory = "1Gi",
                                             .disk = "1Gi"};
    struct error err = {0};
    struct sandboxes *s = &play->sandboxes;
    play->provider.ops = &ops;
    play->agent_fd = -1;
    s->loop = loop_new(&err);
    s->provider = &play->provider;
    struct sandbox *sb = sandbox_new(s, &row, &err);
    if (sb == NULL)
        fail_msg("%s", err.message);
    assert_int_equal(sandbox_insert(sb, &err), 0);
    assert_int_equal(co_spawn(s->loop, agent_when_connected, play, NULL, &err), 0);
    assert_int_equal(co_spawn(s->loop, reader, play, NULL, &err), 0);
    assert_int_equal(loop_run(s->loop, &err), 0);
    if (play->agent_fd >= 0)
        close(play->agent_fd);
    sandbox_remove(sb);
    sandbox_drop(sb);
    loop_free(s->loop);
    buf_release(&play->script);
}

static void add_process(struct buf *script, uint64_t state)
{
    struct agent_process process = {
        .pid = 7, .state = state, .command = "web", .cwd = "/", .user = "root", .name = "web"};
    wire_encode(script, &agent_process_schema, 1, &process);
}

static void test_whole(void **state)
{
    for (size_t piece = 1; piece < 1000; piece = piece * 7 + 1) {
        struct play play = {.script = BUF_INIT(65536), .piece = piece};
        add_process(&play.script, PROCESS_RUNNING);
        wire_encode_raw(&play.script, AGENT_STDOUT, 1, "out", 3);
        wire_encode(&play.script, &agent_gap_schema, 1, &(struct agent_gap){5});
        wire_encode_raw(&play.script, AGENT_STDERR, 1, "err", 3);
        wire_encode_raw(&play.script, AGENT_STDOUT, 1, "!", 1);
        add_process(&play.script, PROCESS_EXITED);
        run(&play);
        assert_int_equal(play.rc, 0);
        assert_string_equal(play.out, "out!");
        assert_string_equal(play.errors, "err");
        assert_int_equal(play.dropped, 5);
        assert_int_equal(play.offset, 112);
    }
}

static void test_hostile(void **state)
{
    static const struct frame_header headers[] = {
        {WIRE_PAYLOAD_MAX + 1, AGENT_STDOUT, 1},
        {0xffffffff, AGENT_STDERR, 1},
        {WIRE_DATA_CHUNK + 1, AGENT_STDOUT, 1},
        {1000, AGENT_PROCESS, 1}, /* cut off */
        {0, AGENT_PROCESS, 1},    /* nothing in it */
        {0, AGENT_GAP + 1000, 1}, /* what is that */
        {0, WIRE_OK, 1},
        {0, WIRE_ERROR, 1},
        {3, AGENT_GAP, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        for (int first = 0; first < 2; first++) {
            struct play play = {.script = BUF_INIT(1 << 20), .piece = 4096};
            unsigned char header[FRAME_HEADER_SIZE];
            if (!first)
                add_process(&play.script, PROCESS_RUNNING);
            frame_header_encode(header, &headers[i]);
            buf_add(&play.script, header, sizeof(header));
            for (size_t k = 0; headers[i].length == WIRE_DATA_CHUNK + 1 && k <= WIRE_DATA_CHUNK;
                 k++)
                buf_addc(&play.script, 'x');
            if (headers[i].type == AGENT_GAP)
                buf_add(&play.script, "\1\0\377", 3);
            run(&play);
            assert_int_equal(play.rc, -1);
            assert_int_not_equal(play.err.code, ERROR_NONE);
            assert_int_equal(play.offset, 0);
        }
    }
}

static void test_agent_that_goes(void **state)
{
    struct play play = {.script = BUF_INIT(4096), .piece = 4096};
    add_process(&play.script, PROCESS_RUNNING);
    wire_encode_raw(&play.script, AGENT_STDOUT, 1, "last", 4);
    run(&play);
    assert_int_equal(play.rc, -1);
    assert_int_equal(play.err.code, ERROR_UNAVAILABLE);
    assert_string_equal(play.out, "last");
    assert_int_equal(play.offset, 104);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_agent_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
