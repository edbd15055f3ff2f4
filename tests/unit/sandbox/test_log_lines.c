/* SPDX-License-Identifier: Apache-2.0 */

/* Lines: cut out of streams, put in order, and never too many. */

#include "sandbox/log_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static struct arena *arena;

static int setup(void **state)
{
    arena = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(arena);
    return 0;
}

static void add(struct log_lines *lines, int64_t time, unsigned rank, const char *text)
{
    const struct sandbox_log_entry entry = {.time_ms = time, .message = slice_of(text)};
    log_lines_add(lines, &entry, rank);
}

/* All messages with a '|' behind each. */
static const char *take(struct log_lines *lines)
{
    struct sandbox_log_entry *entries;
    struct buf out = BUF_INIT(1 << 20);
    size_t count = log_lines_take(lines, arena, &entries);
    for (size_t i = 0; i < count; i++) {
        buf_add(&out, entries[i].message.data, entries[i].message.len);
        buf_addc(&out, '|');
    }
    const char *text = arena_strdup(arena, out.data);
    buf_release(&out);
    log_lines_release(lines);
    return text;
}

static void order(void **state)
{
    struct log_lines lines = {.max_count = 100};
    add(&lines, 5, 2, "started");
    add(&lines, 7, 3, "last");
    add(&lines, 5, 0, "created");
    add(&lines, 5, 1, "starting");
    add(&lines, 6, 3, "one");
    add(&lines, 6, 3, "two"); /* as it was gathered */
    add(&lines, 1, 3, "first");
    assert_string_equal(take(&lines), "first|created|starting|started|one|two|last|");
}

static void newest_only(void **state)
{
    struct log_lines lines = {.max_count = 3, .since_ms = 4};
    for (int i = 0; i < 1000; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", (i * 7) % 1000);
        add(&lines, (i * 7) % 1000, 0, text);
    }
    assert_string_equal(take(&lines), "997|998|999|");
    add(&lines, 3, 0, "too old");
    add(&lines, 4, 0, "just right");
    assert_string_equal(take(&lines), "just right|");
    lines.max_count = 0;
    add(&lines, 4, 0, "nobody wants it");
    assert_string_equal(take(&lines), "");
}

static void bounded_bytes(void **state)
{
    struct log_lines lines = {.max_count = LOGS_TAIL_MAX};
    char *text = malloc(2 * LOG_LINE_MAX + 1);
    memset(text, 'x', 2 * LOG_LINE_MAX);
    text[2 * LOG_LINE_MAX] = '\0';
    for (int i = 0; i < LOGS_TAIL_MAX; i++) {
        add(&lines, i, 0, text);
        assert_true(lines.bytes <= 2 * LOGS_BYTES_MAX);
    }
    struct sandbox_log_entry *entries;
    size_t count = log_lines_take(&lines, arena, &entries);
    assert_int_equal(count, LOGS_BYTES_MAX / LOG_LINE_MAX);
    assert_int_equal(entries[0].message.len, LOG_LINE_MAX); /* cut */
    assert_int_equal(entries[count - 1].time_ms, LOGS_TAIL_MAX - 1);
    log_lines_release(&lines);
    free(text);
}

static size_t split(struct log_lines *lines, const char *data, bool all)
{
    const struct sandbox_log_entry like = {.pid = 7, .process = "name"};
    const struct log_piece piece = {.data = slice_of(data), .now_ms = 9};
    return log_lines_split(lines, &like, 0, &piece, all);
}

static void splitting(void **state)
{
    static const struct {
        const char *data;
        bool all;
        size_t used;
        const char *lines;
    } rows[] = {
        {"", true, 0, ""},
        {"one\ntwo\n", false, 8, "one|two|"},
        {"one\ntwo", false, 4, "one|"},
        {"one\ntwo", true, 7, "one|two|"},
        {"\n\n", false, 2, "||"},
        {"dos\r\nends\r\n", false, 11, "dos|ends|"},
        {"progress\rmore\n", false, 14, "progress\rmore|"},
        {"unfinished", false, 0, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct log_lines lines = {.max_count = 10};
        assert_int_equal(split(&lines, rows[i].data, rows[i].all), rows[i].used);
        assert_string_equal(take(&lines), rows[i].lines);
    }
}

static void endless_line(void **state)
{
    struct log_lines lines = {.max_count = 10};
    char *text = malloc(3 * LOG_LINE_MAX);
    memset(text, 'x', 3 * LOG_LINE_MAX);
    text[3 * LOG_LINE_MAX - 1] = '\0';
    assert_int_equal(split(&lines, text, false), 3 * LOG_LINE_MAX - 1); /* not waited for */
    assert_int_equal(lines.count, 1);
    log_lines_release(&lines);
    free(text);
}

static void times(void **state)
{
    const uint64_t marks[] = {90, 1000, 104, 2000, 108, 3000, 112, 99999999};
    const struct sandbox_log_entry like = {.pid = 7};
    struct log_piece piece = {
        .data = slice_of("abc\ndef\nghi\njkl\n"),
        .offset = 100,
        .times = {(const char *)marks, sizeof(marks)},
        .now_ms = 5000,
    };
    static const int64_t want[] = {1000, 2000, 3000, 5000 /* never later than now */};
    struct log_lines lines = {.max_count = 10};
    struct sandbox_log_entry *entries;
    assert_int_equal(log_lines_split(&lines, &like, 0, &piece, false), 16);
    assert_int_equal(log_lines_take(&lines, arena, &entries), 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(entries[i].time_ms, want[i]);
    log_lines_release(&lines);

    /* Marks that make no sense do no harm. */
    static const char noise[37] = "not marks at all, but some odd bytes";
    for (size_t len = 0; len < sizeof(noise); len++) {
        piece.times = (struct slice){noise, len};
        assert_int_equal(log_lines_split(&lines, &like, 0, &piece, false), 16);
        assert_int_equal(log_lines_take(&lines, arena, &entries), 4);
        for (size_t i = 0; i < 4; i++)
            assert_true(entries[i].time_ms > 0 && entries[i].time_ms <= 5000);
        log_lines_release(&lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(order, setup, teardown),
        cmocka_unit_test_setup_teardown(newest_only, setup, teardown),
        cmocka_unit_test_setup_teardown(bounded_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(splitting, setup, teardown),
        cmocka_unit_test_setup_teardown(endless_line, setup, teardown),
        cmocka_unit_test_setup_teardown(times, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
