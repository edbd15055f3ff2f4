/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lines of a log as they are gathered: from several places, in any order, and however many there
 * are, only the newest are kept. Knows no sandbox.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/slice.h"
#include "sandbox/logs.h"

struct log_line {
    struct sandbox_log_entry entry; /* message and process: owned */
    unsigned rank;                  /* of two at the same time the lower one is first, … */
    uint64_t order;                 /* … then the one that was gathered first */
};

struct log_lines {
    struct log_line *items;
    size_t count, cap;
    size_t bytes;
    size_t max_count; /* newest lines to keep */
    int64_t since_ms; /* older ones are not taken at all */
    uint64_t orders;
    uint64_t left_out;              /* lines that gave way */
    struct memory_account *account; /* that they count in; NULL: none */
};

/* Start from a zeroed struct with max_count, since_ms and account set. */
void log_lines_add(struct log_lines *lines, const struct sandbox_log_entry *entry, unsigned rank);
void log_lines_release(struct log_lines *lines);

/* Sorted, the newest max_count of them, copied into the arena. */
size_t log_lines_take(struct log_lines *lines, struct arena *arena,
                      struct sandbox_log_entry **ret_entries);

/* A piece of a stream: bytes from an offset on, and marks that tell when they came (pairs of
 * offset and Unix time in ms, 64 bits each; what is no such thing is ignored). */
struct log_piece {
    struct slice data;
    uint64_t offset;
    struct slice times;
    int64_t now_ms; /* no line is younger */
};

/*
 * Adds the lines of a piece; `like` says all but message and time. Returns how many bytes were used
 * up: an unfinished line at the end stays unless `all`, or it is longer than LOG_LINE_MAX.
 */
size_t log_lines_split(struct log_lines *lines, const struct sandbox_log_entry *like, unsigned rank,
                       const struct log_piece *piece, bool all);
