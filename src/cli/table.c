/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tables and plain text. Width is what a terminal will take, not bytes: a file name in Japanese
 * must not push the columns after it. The C library knows widths and printability once it has a
 * UTF-8 locale; the one here is always "C.UTF-8", for this file alone, whatever the user's is.
 */

#include "cli/table.h"

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

enum { CELL_MAX = 1 << 20, GAP = 2 };

/* --- text --- */

/* The next character: its bytes, and 0 for a byte that is not UTF-8. */
static size_t next_char(struct slice text, wchar_t *ret_char)
{
    mbstate_t state = {0};
    size_t len = mbrtowc(ret_char, text.data, text.len, &state);
    if (len == (size_t)-1 || len == (size_t)-2) {
        *ret_char = 0;
        return 1;
    }
    return len == 0 ? 1 : len;
}

/* Marks that reorder or hide the text around them: they print, in a way, but not as a sign. */
static bool is_invisible(wchar_t c)
{
    static const struct {
        wchar_t first, last;
    } ranges[] = {{0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200f},  {0x2028, 0x202e},
                  {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}};
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

static void add_escaped(struct buf *out, wchar_t c, const char *bytes)
{
    static const struct {
        wchar_t c;
        const char *text;
    } named[] = {{'\n', "\\n"}, {'\t', "\\t"}, {'\r', "\\r"}};
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        if (c == named[i].c) {
            buf_adds(out, named[i].text);
            return;
        }
    if (c < 0x80)
        buf_addf(out, "\\x%02x", (unsigned char)bytes[0]);
    else
        buf_addf(out, "\\u{%x}", (unsigned)c);
}

static locale_t utf8_begin(locale_t *ret_before)
{
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    *ret_before = utf8 == (locale_t)0 ? (locale_t)0 : uselocale(utf8);
    return utf8;
}

static void utf8_end(locale_t utf8, locale_t before)
{
    if (utf8 == (locale_t)0)
        return;
    uselocale(before);
    freelocale(utf8);
}

void text_add_plain(struct buf *out, struct slice text)
{
    locale_t before, utf8 = utf8_begin(&before);
    while (text.len > 0) {
        wchar_t c;
        size_t len = next_char(text, &c);
        if (iswprint((wint_t)c) && !is_invisible(c))
            buf_add(out, text.data, len);
        else
            add_escaped(out, c, text.data);
        text.data += len;
        text.len -= len;
    }
    utf8_end(utf8, before);
}

size_t text_width(struct slice plain)
{
    locale_t before, utf8 = utf8_begin(&before);
    size_t width = 0;
    while (plain.len > 0) {
        wchar_t c;
        size_t len = next_char(plain, &c);
        int columns = wcwidth(c);
        width += columns > 0 ? (size_t)columns : 0;
        plain.data += len;
        plain.len -= len;
    }
    utf8_end(utf8, before);
    return width;
}

/* --- tables --- */

struct cell {
    char *text;
    size_t width;
};

struct table {
    const char *const *titles;
    size_t columns;
    struct cell *cells;
    size_t count, room;
};

static void *or_abort(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

struct table *table_new(const char *const *titles, size_t columns)
{
    struct table *table = or_abort(calloc(1, sizeof(*table)));
    table->titles = titles;
    table->columns = columns;
    return table;
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i].text);
    free(table->cells);
    free(table);
}

void table_cell(struct table *table, struct slice text)
{
    if (table->count == table->room) {
        table->room = table->room == 0 ? 64 : table->room * 2;
        table->cells = or_abort(reallocarray(table->cells, table->room, sizeof(*table->cells)));
    }
    struct buf plain = BUF_INIT(CELL_MAX);
    text_add_plain(&plain, text.len > 0 ? text : slice_of("-"));
    struct cell *cell = &table->cells[table->count++];
    cell->width = text_width((struct slice){plain.data, plain.len});
    cell->text = or_abort(buf_steal(&plain));
}

void table_text(struct table *table, const char *text)
{
    table_cell(table, slice_of(text));
}

void table_printf(struct table *table, const char *fmt, ...)
{
    struct buf text = BUF_INIT(CELL_MAX);
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    table_cell(table, (struct slice){text.data, text.len});
    buf_release(&text);
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t width = strlen(table->titles[column]);
    for (size_t i = column; i < table->count; i += table->columns)
        if (table->cells[i].width > width)
            width = table->cells[i].width;
    return width;
}

static void write_cell(struct buf *out, const char *text, size_t width, size_t column_wide,
                       bool last)
{
    buf_adds(out, text);
    if (last)
        buf_addc(out, '\n');
    else
        buf_addf(out, "%*s", (int)(column_wide - width + GAP), "");
}

void table_write(const struct table *table, struct buf *out)
{
    size_t *widths = or_abort(calloc(table->columns, sizeof(*widths)));
    for (size_t i = 0; i < table->columns; i++)
        widths[i] = column_width(table, i);
    for (size_t i = 0; i < table->columns; i++)
        write_cell(out, table->titles[i], strlen(table->titles[i]), widths[i],
                   i + 1 == table->columns);
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        write_cell(out, table->cells[i].text, table->cells[i].width, widths[column],
                   column + 1 == table->columns);
    }
    free(widths);
}
