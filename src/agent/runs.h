/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * In which order the bytes of a process's two streams came: a row of runs, each so many bytes of
 * one stream. The bytes themselves are in the streams' own rings (output.h).
 *
 * Together they are one log with offsets of its own. The oldest runs are forgotten past a maximum;
 * a process that writes to one stream alone has a single run.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RUNS_FEW = 2 };

struct runs { /* starts zeroed */
    uint32_t few[RUNS_FEW];
    uint32_t *items; /* a ring, once they are more than a few */
    unsigned cap;
    unsigned head;
    unsigned count;
    uint64_t start; /* offset, in the whole log, of the oldest run */
};

/* Where a reader is. Good until the runs change. */
struct run_cursor {
    unsigned index;     /* of the run */
    uint32_t into;      /* bytes of it that were passed */
    uint64_t offset;    /* in the whole log */
    uint64_t stream[2]; /* in each stream */
};

void runs_release(struct runs *runs);
size_t runs_bytes(const struct runs *runs);

/* So many more bytes came, of stream 0 or 1. */
void runs_add(struct runs *runs, unsigned stream, size_t len);

/* The place of an offset (moved up to what is remembered, and down to the end). totals: how long
 * the streams are. */
void runs_seek(const struct runs *runs, const uint64_t totals[2], uint64_t offset,
               struct run_cursor *ret_cursor);
/* What follows there: bytes of *ret_stream; 0 at the end. */
size_t runs_next(const struct runs *runs, const struct run_cursor *cursor, unsigned *ret_stream);
/* Passes some of them. */
void runs_pass(const struct runs *runs, struct run_cursor *cursor, size_t len);
