/* SPDX-License-Identifier: Apache-2.0 */

/* A kernel's frames: what is whole is read, what is not is waited for or refused. */

#include "code/frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

#define BYTES(text) ((struct slice){(text), sizeof(text) - 1})

static void frames_are_taken_one_by_one(void **state)
{
    struct slice bytes = BYTES("O\3\0\0\0abcD\14\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0");
    struct code_frame frame;
    struct error err;
    uint32_t numbers[3];
    size_t size;
    assert_int_equal(code_frame_next(bytes, &frame, &size, &err), 1);
    assert_int_equal(frame.type, 'O');
    assert_int_equal(size, 8);
    assert_true(slice_eq(frame.payload, slice_of("abc")));
    bytes = (struct slice){bytes.data + size, bytes.len - size};
    assert_int_equal(code_frame_next(bytes, &frame, &size, &err), 1);
    assert_int_equal(code_frame_numbers(&frame, numbers, &err), 0);
    assert_int_equal(numbers[0], 1);
    assert_int_equal(numbers[1], 2);
    assert_int_equal(numbers[2], 3);
}

static void what_is_not_whole_is_waited_for(void **state)
{
    struct slice whole = BYTES("E\2\0\0\0xy");
    struct code_frame frame;
    struct error err;
    size_t size;
    for (size_t len = 0; len < whole.len; len++)
        assert_int_equal(code_frame_next((struct slice){whole.data, len}, &frame, &size, &err), 0);
    assert_int_equal(code_frame_next(whole, &frame, &size, &err), 1);
}

static void garbage_is_refused(void **state)
{
    static const struct slice rows[] = {BYTES("garbage"), BYTES("\0\0\0\0\0"),
                                        BYTES("O\377\377\377\377"), BYTES("O\1\0\0\1")};
    struct code_frame frame;
    size_t size;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        assert_int_equal(code_frame_next(rows[i], &frame, &size, &err), -1);
        assert_int_equal(err.code, ERROR_CODE_KERNEL_FAILED);
    }
}

static int event_of(char type, struct slice payload, struct arena *arena, struct code_event *event)
{
    const struct code_frame frame = {type, payload};
    struct error err = {0};
    int rc = code_frame_event(&frame, arena, event, &err);
    assert_int_equal(rc < 0 ? ERROR_CODE_KERNEL_FAILED : ERROR_NONE, err.code);
    return rc;
}

static void results_have_their_representations(void **state)
{
    struct arena *arena = arena_new();
    struct code_event event;
    assert_int_equal(event_of('R', BYTES("\1\4text\2\0\0\00042\5*data\2\0\0\0{}"), arena, &event),
                     0);
    assert_int_equal(event.kind, CODE_RESULT);
    assert_true(event.is_main);
    assert_int_equal(event.item_count, 2);
    assert_string_equal(event.items[0].format, "text");
    assert_false(event.items[0].is_json);
    assert_true(slice_eq(event.items[0].value, slice_of("42")));
    assert_string_equal(event.items[1].format, "data");
    assert_true(event.items[1].is_json);
    arena_free(arena);
}

static void broken_events_are_refused(void **state)
{
    static const struct {
        char type;
        struct slice payload;
    } rows[] = {
        {'R', BYTES("")},
        {'R', BYTES("\0\4tex")},
        {'R', BYTES("\0\4text\377\377\377\377x")},
        {'R', BYTES("\0\0\1\0\0\0x")},
        {'R', BYTES("\0\1\"\1\0\0\0x")},
        {'X', BYTES("")},
        {'X', BYTES("\1\0\0\0a\1\0\0\0b\2\0\0\0c")},
        {'X', BYTES("\0\0\0\0\0\0\0\0\0\0\0\0more")},
        {'G', BYTES("\1\0\0\0")},
        {'H', BYTES("")},
    };
    struct arena *arena = arena_new();
    struct code_event event;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(event_of(rows[i].type, rows[i].payload, arena, &event), -1);
    arena_free(arena);
}

static void too_many_representations_are_refused(void **state)
{
    struct arena *arena = arena_new();
    _cleanup_buf_ struct buf payload = BUF_INIT(64 * 1024);
    struct code_event event;
    buf_addc(&payload, '\0');
    for (int i = 0; i <= CODE_ITEMS_MAX; i++) {
        buf_addc(&payload, 1);
        buf_add(&payload, "a\0\0\0\0", 5);
    }
    assert_int_equal(event_of('R', (struct slice){payload.data, payload.len}, arena, &event), -1);
    assert_int_equal(event_of('R', (struct slice){payload.data, payload.len - 6}, arena, &event),
                     0);
    arena_free(arena);
}

static void a_run_is_written_as_kernels_read_it(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1024);
    code_frame_run(&out, 7, BYTES("A=b\0"), slice_of("1+1"));
    assert_int_equal(out.len, 20);
    assert_memory_equal(out.data, "R\17\0\0\0\7\0\0\0\4\0\0\0A=b\0001+1", 20);
    buf_clear(&out);
    code_frame_run(&out, 1, (struct slice){0}, (struct slice){0});
    assert_int_equal(out.len, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_taken_one_by_one),
        cmocka_unit_test(what_is_not_whole_is_waited_for),
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(results_have_their_representations),
        cmocka_unit_test(broken_events_are_refused),
        cmocka_unit_test(too_many_representations_are_refused),
        cmocka_unit_test(a_run_is_written_as_kernels_read_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
