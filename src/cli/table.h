/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text for people: aligned columns, and strings from strangers made harmless. Names, paths and
 * commands come from inside sandboxes; none of them may move the cursor, change colours or turn
 * the direction of the text on somebody's terminal.
 */

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

/* Appends text with everything that does not print as one sign written out: "\n", "\x1b",
 * "\u{202e}"; bytes that are not UTF-8 as "\xff". */
void text_add_plain(struct buf *out, struct slice text);

/* Columns that the text takes on a terminal once it is plain. */
size_t text_width(struct slice plain);

struct table;

/* titles: borrowed. Never returns NULL: running out of memory aborts. */
struct table *table_new(const char *const *titles, size_t columns);
void table_free(struct table *table);

static inline void cleanup_table(struct table **table)
{
    table_free(*table);
}
#define _cleanup_table_ __attribute__((cleanup(cleanup_table)))

/* The next cell, left to right and row by row. "" shows as "-", so that every row has as many words
 * to a script as it has columns. */
void table_cell(struct table *table, struct slice text);
void table_text(struct table *table, const char *text); /* NULL is "" */
void table_printf(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Titles and rows; two spaces between columns, none at the end of a line. */
void table_write(const struct table *table, struct buf *out);
