/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The audit log as it is written: lines of a hash chain (audit/chain.h) in files that are rotated
 * (audit/files.h). Who writes it knows what a line says; this is only about its bytes being there.
 *
 * A line is begun, filled with audit_add_…() and ended; it is then in the buffer, with its number
 * and hash, and reaches the file with the next flush: at once by audit_flush(), or after
 * AUDIT_DELAY_MS. What was flushed survives the death of this process (not a power cut). The head
 * follows within as long.
 *
 * A full disk: room is taken ahead of what is written, so that it is noticed while there is still
 * some; from then on audit_admit() refuses (or not, by the options), and the room that is left is
 * for removals, which audit_admit_removal() lets through. What does not fit into the
 * buffer either is counted, and the count is written as a line as soon as that is possible.
 */

#include <stdbool.h>
#include <stdint.h>

#include "audit/files.h"
#include "base/buf.h"
#include "base/error.h"
#include "loop/loop.h"

enum {
    AUDIT_DELAY_MS = 100,
    AUDIT_BUFFER_MAX = 1 << 20,  /* lines that could not be written yet, bytes */
    AUDIT_ROOM = 256 * 1024,     /* that is there ahead, at least … */
    AUDIT_ROOM_STEP = 1 << 20,   /* … and is taken at once */
    AUDIT_ROOM_LAST = 16 * 1024, /* … which nothing but what was admitted may use */
    AUDIT_RETRY_MS = 1000,       /* between two tries after a failure */
    AUDIT_SPARE_PER_S = 20,      /* lines on people without a key … */
    AUDIT_SPARE_AT_ONCE = 2000,  /* … of which so many may come together */
};

struct audit_options {
    bool off;
    bool no_reads;       /* requests that change nothing are left out */
    bool all_reads;      /* … and never, however many a caller sends */
    bool go_on;          /* when nothing can be written; else requests that change are refused */
    uint64_t file_bytes; /* a file is not made larger, by much */
    unsigned files;      /* that are kept, the one being written included */
    int64_t keep_ms;     /* no longer than that */
};

/* "off", "on", or a list: "reads=no,full=go-on,size=64M,files=16,age=90d"; what is not named is as
 * by default, NULL and "" too. INVALID_ARGUMENT says what there is. */
int audit_options_parse(const char *text, struct audit_options *ret_options, struct error *err);

/* What has happened since the start. */
struct audit_counters {
    uint64_t lines;
    uint64_t bytes;
    uint64_t writes;   /* system calls */
    uint64_t failures; /* of them */
    uint64_t lost;     /* lines that never reached the buffer */
    uint64_t skipped;  /* lines that were not begun: audit_spare(), audit_skip() */
    uint64_t refused;  /* requests, since nothing could be written */
    uint64_t files;    /* that are there */
    bool failing;      /* now */
};

struct audit;

/* How many bytes of its lines a workspace keeps when files are pruned for their number; 0: there is
 * no limit. */
typedef uint64_t audit_quota(const void *ctx, const char *workspace);
#define AUDIT_QUOTA_DEFAULT (UINT64_C(64) << 20)

/*
 * Opens the log in dir_fd (borrowed), whose head is in head_fd (borrowed). A last line that was not
 * written whole is cut off, and a line says so; lines that the head knows of and the log does not
 * have are said to be missing by a line as well. loop NULL: nothing happens by itself.
 */
int audit_open(struct loop *loop, int dir_fd, int head_fd, const struct audit_options *options,
               struct audit **ret_audit, struct error *err);
/* Writes what is left. NULL is fine. */
void audit_close(struct audit *audit);

/* Called every AUDIT_DELAY_MS at most while something waits to be written, before it is: the last
 * moment to add lines on what is under way. */
void audit_set_tick(struct audit *audit, void (*tick)(void *ctx), void *ctx);
/* Has the tick come. */
void audit_wake(struct audit *audit);

/* Whether what is to be recorded can be: UNAVAILABLE. */
int audit_admit(struct audit *audit, struct error *err);
/* The same for what removes something, and so makes room: it may use the room that is left. */
int audit_admit_removal(struct audit *audit, struct error *err);
/* Whether lines on anything else are to be left out (audit_skip()), because of that. */
bool audit_saves_room(const struct audit *audit);

/* A line of this kind ("event"). NULL: the buffer is full, and the line counts as lost. Nothing may
 * wait until audit_end(). */
struct buf *audit_begin(struct audit *audit, const char *event, int64_t unix_ms);
void audit_end(struct audit *audit);
/* Whether there is room for a line on somebody whom nobody knows; false: it is counted, and a line
 * tells how many there were. Otherwise anybody could have the log rotate until what others did is
 * gone. */
bool audit_spare(struct audit *audit, int64_t unix_ms);
/* Counts one that is left out for another reason. */
void audit_skip(struct audit *audit);
/* -1: not all of it could be written; it is tried again later. */
int audit_flush(struct audit *audit, struct error *err);

void audit_set_quota(struct audit *audit, audit_quota *quota, const void *ctx);
/* Bytes of its lines that outlived their files. */
uint64_t audit_retained(const struct audit *audit, const char *workspace);

const struct audit_options *audit_options_of(const struct audit *audit);
int audit_dir_fd(const struct audit *audit);
struct audit_head audit_head_of(const struct audit *audit);
struct audit_counters audit_counters_of(const struct audit *audit);
