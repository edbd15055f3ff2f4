/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Marks in the plain output of a kernel that has no channel of its own:
 *
 *     RS RS "cella H" RS                          it is ready; in both streams
 *     RS RS "cella S NUMBER" RS                   this run begins
 *     RS RS "cella D NUMBER COUNT STATUS" RS      it has ended
 *
 * RS is the byte 0x1e. Everything else is output, also what only looks like a mark. The code that
 * is run could write marks, too: it would cut off its own output, and nobody else's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum mark_kind {
    MARK_NONE, /* more has to come before anything can be said */
    MARK_TEXT, /* output: all of the piece */
    MARK_HELLO,
    MARK_BEGIN, /* numbers: the run's */
    MARK_END,   /* numbers: the run's, how many there were, status */
};

struct mark {
    enum mark_kind kind;
    uint32_t numbers[3];
};

enum { MARK_SIZE_MAX = 64 };

/* What the bytes begin with, and how many of them it is. */
struct mark mark_next(struct slice bytes, size_t *ret_size);

/* The number of the run that begins last in there; 0: none. */
uint32_t mark_last_begin(struct slice bytes);
