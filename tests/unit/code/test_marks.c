/* SPDX-License-Identifier: Apache-2.0 */

/* Marks in plain output: found in any pieces, and nothing else is taken for one. */

#include "code/marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define BYTES(text) ((struct slice){(text), sizeof(text) - 1})
#define RS          "\036"

static void marks_are_read(void **state)
{
    static const struct {
        struct slice bytes;
        enum mark_kind kind;
        size_t size;
        uint32_t numbers[3];
    } rows[] = {
        {BYTES(RS RS "cella H" RS), MARK_HELLO, 10, {0}},
        {BYTES(RS RS "cella S 7" RS "x"), MARK_BEGIN, 12, {7}},
        {BYTES(RS RS "cella D 7 3 130" RS), MARK_END, 18, {7, 3, 130}},
        {BYTES("text" RS RS "cella H" RS), MARK_TEXT, 4, {0}},
        {BYTES("text"), MARK_TEXT, 4, {0}},
        {BYTES(""), MARK_NONE, 0, {0}},
        {BYTES("ab" RS), MARK_TEXT, 2, {0}},
        {BYTES(RS), MARK_NONE, 0, {0}},
        {BYTES(RS RS "cell"), MARK_NONE, 0, {0}},
        {BYTES(RS RS "cella D 7 3 "), MARK_NONE, 0, {0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t size;
        struct mark mark = mark_next(rows[i].bytes, &size);
        assert_int_equal(mark.kind, rows[i].kind);
        assert_int_equal(size, rows[i].size);
        if (mark.kind == MARK_BEGIN || mark.kind == MARK_END)
            assert_memory_equal(mark.numbers, rows[i].numbers, sizeof(mark.numbers));
    }
}

static void what_looks_like_one_is_output(void **state)
{
    static const struct slice rows[] = {
        BYTES(RS "x"),
        BYTES(RS RS "cello H" RS "!"),
        BYTES(RS RS "cella Q" RS "!"),
        BYTES(RS RS "cella S" RS "!"),
        BYTES(RS RS "cella S x" RS "!"),
        BYTES(RS RS "cella S 1 2" RS "!"),
        BYTES(RS RS "cella S 4294967296" RS "!"),
        BYTES(RS RS "cella D 1 2" RS "!"),
        BYTES(RS RS "cella  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t size;
        assert_int_equal(mark_next(rows[i], &size).kind, MARK_TEXT);
        assert_int_equal(size, rows[i].len);
    }
}

/* Fed byte by byte, the same comes out. */
static void pieces_do_not_matter(void **state)
{
    const struct slice all =
        BYTES("a" RS RS "cella S 1" RS "b" RS "c" RS RS "cella D 1 2 3" RS RS RS "cellx");
    _cleanup_buf_ struct buf in = BUF_INIT(1024), text = BUF_INIT(1024);
    unsigned begins = 0, ends = 0;
    for (size_t i = 0; i < all.len; i++) {
        size_t size;
        struct mark mark;
        buf_add(&in, all.data + i, 1);
        while ((mark = mark_next((struct slice){in.data, in.len}, &size)).kind != MARK_NONE) {
            if (mark.kind == MARK_TEXT)
                buf_add(&text, in.data, size);
            begins += mark.kind == MARK_BEGIN;
            ends += mark.kind == MARK_END;
            buf_consume(&in, size);
        }
    }
    assert_int_equal(begins, 1);
    assert_int_equal(ends, 1);
    assert_string_equal(text.data, "ab" RS "c" RS RS "cellx");
}

static void the_last_beginning_is_found(void **state)
{
    assert_int_equal(
        mark_last_begin(BYTES("x" RS RS "cella S 3" RS "y" RS RS "cella S 9" RS RS "z")), 9);
    assert_int_equal(mark_last_begin(BYTES("nothing")), 0);
    assert_int_equal(mark_last_begin((struct slice){0}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_read),
        cmocka_unit_test(what_looks_like_one_is_output),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(the_last_beginning_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
