/* SPDX-License-Identifier: Apache-2.0 */

/* Keys and the line that they make. */

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/line.h"

/* What is in the line after all keys, with '|' where the cursor is. */
static void type(struct line *line, const char *keys, size_t piece, struct buf *out)
{
    _cleanup_buf_ struct buf in = BUF_INIT(4096);
    for (size_t len = strlen(keys), at = 0; at < len; at += piece) {
        buf_add(&in, keys + at, len - at < piece ? len - at : piece);
        for (size_t used = 1; used > 0;) {
            enum line_key key = line_take(line, in.data, in.len, &used);
            assert_true(used <= in.len && (used > 0) == (key != LINE_NEEDS_MORE));
            buf_consume(&in, used);
        }
    }
    assert_int_equal(in.len, 0);
    buf_add(out, line->text.data, line->cursor);
    buf_addc(out, '|');
    buf_add(out, line->text.data + line->cursor, line->text.len - line->cursor);
}

static const struct {
    const char *keys, *line;
} rows[] = {
    {"", "|"},
    {"abc", "abc|"},
    {"abc\033[D\033[DX", "aX|bc"},
    {"abc\033OH1\033OF2", "1abc2|"},
    {"abc\001\0052\001\033[3~", "|bc2"},
    {"\303\251\303\251\177", "\303\251|"},
    {"a\303\251\033[D\033[D\033[C\004", "a|"},
    {"one two\027", "one |"},
    {"one two\033bX\033f!", "one Xtwo!|"},
    {"one two\033[1;5D\033[1;5DX", "X|one two"},
    {"abc\002\013", "ab|"},
    {"abc\002\025", "|c"},
    {"\tx", "    x|"},
    {"a\033[200~b\033[201~", "ab|"},
    {"\033[D\033[C\177\004", "|"},
    {"\033[A", "second|"},
    {"\033[A\033[A", "first|"},
    {"\033[A\033[A\033[A", "first|"},
    {"typed\033[A\033[B", "typed|"},
    {"typed\020\020\016!", "second!|"},
    {"\033[B", "|"},
    {"a\001\002b\006\006c", "bac|"},
    {"a\007\b", "|"},
};

static void test_keys(void **state)
{
    static const size_t pieces[] = {1, 3, 1000};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
            struct history history = {0};
            _cleanup_buf_ struct buf out = BUF_INIT(4096);
            struct line line;
            history_add(&history, "first");
            history_add(&history, "second");
            history_add(&history, "second");
            history_add(&history, "  ");
            assert_int_equal(history.count, 2);
            line_init(&line, &history);
            type(&line, rows[i].keys, pieces[p], &out);
            assert_string_equal(out.data, rows[i].line);
            line_release(&line);
            history_release(&history);
        }
}

static void test_ends(void **state)
{
    static const struct {
        const char *key;
        enum line_key how;
    } ends[] = {{"\r", LINE_DONE},         {"\n", LINE_DONE},     {"\003", LINE_CANCELLED},
                {"\004", LINE_ENDED},      {"\014", LINE_REDRAW}, {"\033", LINE_NEEDS_MORE},
                {"\303", LINE_NEEDS_MORE}, {"x", LINE_CHANGED}};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct history history = {0};
        struct line line;
        size_t used;
        line_init(&line, &history);
        assert_int_equal(line_take(&line, ends[i].key, 1, &used), ends[i].how);
        line_release(&line);
    }
}

static void test_a_long_line_is_scrolled(void **state)
{
    struct history history = {0};
    _cleanup_buf_ struct buf out = BUF_INIT(4096), ignored = BUF_INIT(4096);
    struct line line;
    line_init(&line, &history);
    type(&line, "0123456789abcdefghijklmnopqrstuvwxyz", 100, &ignored);
    line_draw(&line, "> ", 23, &out);
    assert_string_equal(out.data, "\r> ghijklmnopqrstuvwxyz\033[K");
    buf_clear(&out);
    type(&line, "\001", 1, &ignored);
    line_draw(&line, "> ", 23, &out);
    assert_string_equal(out.data, "\r> 0123456789abcdefghij\033[K\033[20D");
    line_release(&line);
}

static void test_old_lines_make_room(void **state)
{
    struct history history = {0};
    char text[16];
    for (int i = 0; i < HISTORY_LINES_MAX + 5; i++) {
        snprintf(text, sizeof(text), "%d", i);
        history_add(&history, text);
    }
    assert_int_equal(history.count, HISTORY_LINES_MAX);
    assert_string_equal(history.lines[0], "5");
    history_release(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_a_long_line_is_scrolled),
        cmocka_unit_test(test_old_lines_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
