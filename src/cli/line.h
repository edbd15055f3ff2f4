/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A line that is being typed, as a shell has it: keys in, text out, and the lines before it at
 * hand. No terminal is needed here; line_input.h has one.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

enum { LINE_BYTES_MAX = 1 << 20, HISTORY_LINES_MAX = 1000 };

/* --- what was typed before --- */

struct history { /* start from a zeroed struct */
    char *lines[HISTORY_LINES_MAX];
    size_t count;
    char *path; /* where they are kept; NULL: nowhere */
};

/* Reads what is kept in the user's own folder, if there is one. Nothing of it is needed: what can
 * not be read or written is not there. */
void history_open(struct history *history);
void history_add(struct history *history, const char *line); /* unless it is empty, or the last */
void history_release(struct history *history);

/* --- a line --- */

struct line {
    struct buf text;
    size_t cursor; /* in bytes, never inside a character */
    struct history *history;
    size_t at;       /* which line of it is shown; its count: the one that is typed */
    struct buf kept; /* … meanwhile */
};

enum line_key {
    LINE_NEEDS_MORE, /* the key is not whole */
    LINE_CHANGED,
    LINE_DONE,
    LINE_CANCELLED, /* ^C */
    LINE_ENDED,     /* ^D in an empty line */
    LINE_REDRAW,    /* ^L */
};

void line_init(struct line *line, struct history *history); /* history: borrowed */
void line_release(struct line *line);

/* Takes one key from the bytes; *ret_used says how many they were. */
enum line_key line_take(struct line *line, const char *in, size_t len, size_t *ret_used);

/* How it is drawn, over itself, in one row of a terminal: scrolled when it is longer. */
void line_draw(const struct line *line, const char *prompt, size_t columns, struct buf *out);
