/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The terminal that somebody sits at: its size, what it can show, and a page on it that is drawn
 * again and again and leaves it as it was.
 */

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "base/buf.h"
#include "base/error.h"
#include "loop/loop.h"

/* Of the terminal on stdout; 80 and 24 where it does not say. */
size_t screen_columns(void);
size_t screen_rows(void);

/* Whether stdout is a terminal, and one that shows UTF-8. */
bool screen_is_terminal(void);
bool screen_shows_utf8(void);

/* A page of its own, with keys read one by one. Start from a zeroed struct. */
struct screen {
    bool open;
    struct termios before;
    struct watch signals;
    int signal_fd;
    bool ended; /* a signal asked for the end */
};

/* stdin and stdout have to be terminals. Signals that would end the program are noticed by
 * screen_key() instead, so that the terminal can be put right. */
int screen_open(struct screen *screen, struct loop *loop, struct error *err);
void screen_close(struct screen *screen); /* fine when it is not open */

/* Shows the text from the top of the page: as many lines as there is room for, each cut to it. */
int screen_draw(const struct buf *text, struct error *err);

/* Waits for a key: its byte, 0 when none came in time, -1 when the page is to be closed (a signal,
 * the end of the input). On a coroutine. */
int screen_key(struct screen *screen, struct loop *loop, int64_t timeout_ms);
