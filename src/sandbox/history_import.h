/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writing commits: a `git fast-import` that is started when the first byte is worth it, and that
 * changes nothing in the repository before import_end() has succeeded: one that is killed, or whose
 * cellad is, leaves at most an unused pack behind.
 */

#include "sandbox/history_git.h"
#include "sandbox/history_manifest.h"

#define HISTORY_BRANCH "refs/heads/main"

struct import { /* start from a zeroed struct with the first two set, and import_cancel() it */
    struct git_program *program;
    int repository_fd;
    struct git git;
    char commit[GIT_NAME_SIZE]; /* the newest one that was written; "": none */
    unsigned marks;
    uint64_t pack_max; /* bytes of the pack; 0: no limit */
};

/* A blob of so many bytes, which follow in pieces, then import_blob_end(). */
int import_blob_begin(struct import *import, uint64_t size, struct error *err);
int import_blob_data(struct import *import, struct slice data, struct error *err);
int import_blob_end(struct import *import, struct error *err);

struct import_commit {
    const char *parent; /* ""; none */
    const char *message;
    int64_t time_ms;
};

/*
 * One commit: begin, then changes, removals first, then end, which fills import->commit. Blobs of
 * put() are in the repository or were written before; a link's target is given as its content.
 */
int import_commit_begin(struct import *import, const struct import_commit *commit,
                        struct error *err);
int import_remove(struct import *import, const char *path, struct error *err);
int import_put(struct import *import, const struct tracked *item, struct error *err);
int import_put_text(struct import *import, const char *git_mode, const char *path,
                    struct slice text, struct error *err);
int import_commit_end(struct import *import, struct error *err);

/* All of it is there now. Fine when nothing was written. CONFLICT is not among the errors: nobody
 * else writes to this repository. */
int import_end(struct import *import, struct error *err);
void import_cancel(struct import *import);
#define _cleanup_import_ __attribute__((cleanup(import_cancel)))
