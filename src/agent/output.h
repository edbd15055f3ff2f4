/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One output stream of a process: the newest `max` bytes, and a count of all.
 *
 * Bytes have an offset in the whole output, so a reader goes on where it was, and learns exactly
 * what it missed. The memory is a ring that grows as output comes, so that the many processes
 * that print a line cost a line.
 *
 * When bytes came is remembered by marks, one per moment in which some did: a bounded number of
 * them, which become sparser the more there are.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/slice.h"

/* From this offset on, until the next mark, bytes came at this time or a little later. */
struct output_mark {
    uint64_t offset;
    uint64_t time_ms; /* Unix time */
};

struct output {
    char *data;
    size_t cap;
    size_t len;                /* in the ring */
    size_t head;               /* index of the oldest byte */
    size_t max;                /* what is kept and shown; the ring may be larger */
    uint64_t total;            /* bytes ever written */
    struct output_mark mark;   /* the newest; the only one for those that print a line */
    struct output_mark *marks; /* those before it, oldest first */
    unsigned mark_count, mark_cap;
};

void output_init(struct output *output, size_t max);
void output_release(struct output *output);

/*
 * Where the next bytes go: fills iov and returns the number of pieces (1 or 2), 0 when there is
 * no memory at all. Read into them and say how many bytes came with output_commit(). The space may
 * overlap the oldest bytes, which are dropped by the commit; nothing else happens in between.
 */
int output_space(struct output *output, struct iovec iov[2]);
void output_commit(struct output *output, size_t len);

/* What is committed or added next comes at that time. */
void output_stamp(struct output *output, uint64_t time_ms);

/* Appends the marks that tell when the bytes from…to came (to - 1 is the last) to `out`, as they
 * are: whole structs, oldest first. */
void output_times(const struct output *output, uint64_t from, uint64_t to, struct buf *out);

static inline size_t output_marks_bytes(const struct output *output)
{
    return output->mark_cap * sizeof(*output->marks);
}

/* Appends what is in memory already. */
void output_add(struct output *output, const char *data, size_t len);

/* Counts bytes that could not be kept: what is in the ring is dropped with them. */
void output_skip(struct output *output, size_t len);

/* Offset of the oldest byte that can be read; the total when there is none. */
uint64_t output_start(const struct output *output);

/* Appends up to max bytes from offset (moved up to output_start(), and down to the total) to `out`.
 * Returns the offset of the first byte appended. */
uint64_t output_read(const struct output *output, uint64_t offset, size_t max, struct buf *out);

/* The same without copying: where up to max bytes from offset (which must be there) lie. Returns
 * the number of pieces; good until more bytes come. */
int output_peek(const struct output *output, uint64_t offset, size_t max, struct iovec iov[2]);

/* Gives back memory that is not needed for what is kept. Call it when the stream has ended. */
void output_trim(struct output *output);
