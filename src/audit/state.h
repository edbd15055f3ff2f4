/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files that write the log share. */

#include <uthash.h>

#include "audit/log.h"

/* Lines of a workspace that outlived their files. */
struct retained {
    char workspace[64];
    uint64_t bytes;
    /* of the file that is being pruned */
    uint64_t in_file, skip, left_out;
    UT_hash_handle hh;
};

struct audit {
    struct loop *loop;
    int dir_fd, head_fd;
    struct audit_options options;
    struct audit_chain chain;
    struct buf lines;  /* sealed, and not written; behind them the one that is being made */
    size_t start;      /* of that one */
    int fd;            /* of the file that is written to */
    uint64_t written;  /* bytes in it */
    uint64_t room;     /* bytes that are taken on the disk for it */
    bool no_room;      /* the file system takes none ahead */
    bool low;          /* … or has none left */
    int64_t born_ms;   /* when the file's first line was written; Unix time */
    int64_t rotate_ms; /* the next file is not begun before; Unix time */
    uint64_t head_seq;
    int64_t retry_at;                   /* loop's time */
    uint64_t lost;                      /* lines that no line has told of yet */
    uint64_t skipped;                   /* the same for those that had no room */
    int64_t spare_ms;                   /* when the room for lines on strangers is whole again */
    int64_t time_ms;                    /* that the next one is the text of */
    char time_text[AUDIT_TIME_LEN + 1]; /* most lines are of the same second as the one before */
    struct timer timer;
    void (*tick)(void *ctx);
    void *tick_ctx;
    struct audit_counters counters;
    audit_quota *quota; /* NULL: AUDIT_QUOTA_DEFAULT */
    const void *quota_ctx;
    struct retained *retained; /* by workspace */
    uint64_t retained_bytes;
    bool retained_known; /* all files of retained lines were counted */
    bool pruning, prune_again;
};

/* A line on the log itself: it is begun whatever the file's size. audit_end() ends it. */
struct buf *audit_begin_own(struct audit *a, const char *event, int64_t unix_ms);

/* retain.c: has old files go, soon. */
void audit_prune(struct audit *a);
void audit_retained_release(struct audit *a);

/* recover.c: finds where the log ends, and opens its last file. */
int audit_recover(struct audit *a, struct error *err);

/* log.c: starts another file, whose first line is the chain's next one. */
int audit_rotate(struct audit *a, struct error *err);
