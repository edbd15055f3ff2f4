/* SPDX-License-Identifier: Apache-2.0 */

/* Following the output of a process whose agent says whatever it likes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/process_output.h"
#include "agent_play.h"

struct play {
    struct agent_play box;
    char out[256], errors[256];
    uint64_t dropped, offset;
    int rc; /* 0: the end was reached */
    struct error err;
};

static void reader(void *arg)
{
    struct play *play = arg;
    struct arena *arena = arena_new();
    struct process_output *output = NULL;
    struct agent_process process;
    struct output_event event = {.kind = OUTPUT_IDLE};
    play->rc = process_output_follow(&play->box.sandboxes, "default", "box", "web", 100, 0, arena,
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
}

static void run(struct play *play)
{
    agent_play_run(&play->box, reader, play);
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
        struct play play = {.box = AGENT_PLAY(65536)};
        play.box.piece = piece;
        add_process(&play.box.script, PROCESS_RUNNING);
        wire_encode_raw(&play.box.script, AGENT_STDOUT, 1, "out", 3);
        wire_encode(&play.box.script, &agent_gap_schema, 1, &(struct agent_gap){5});
        wire_encode_raw(&play.box.script, AGENT_STDERR, 1, "err", 3);
        wire_encode_raw(&play.box.script, AGENT_STDOUT, 1, "!", 1);
        add_process(&play.box.script, PROCESS_EXITED);
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
            struct play play = {.box = AGENT_PLAY(1 << 20)};
            play.box.piece = 4096;
            unsigned char header[FRAME_HEADER_SIZE];
            if (!first)
                add_process(&play.box.script, PROCESS_RUNNING);
            frame_header_encode(header, &headers[i]);
            buf_add(&play.box.script, header, sizeof(header));
            for (size_t k = 0; headers[i].length == WIRE_DATA_CHUNK + 1 && k <= WIRE_DATA_CHUNK;
                 k++)
                buf_addc(&play.box.script, 'x');
            if (headers[i].type == AGENT_GAP)
                buf_add(&play.box.script, "\1\0\377", 3);
            run(&play);
            assert_int_equal(play.rc, -1);
            assert_int_not_equal(play.err.code, ERROR_NONE);
            assert_int_equal(play.offset, 0);
        }
    }
}

static void test_agent_that_goes(void **state)
{
    struct play play = {.box = AGENT_PLAY(4096)};
    play.box.piece = 4096;
    add_process(&play.box.script, PROCESS_RUNNING);
    wire_encode_raw(&play.box.script, AGENT_STDOUT, 1, "last", 4);
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
