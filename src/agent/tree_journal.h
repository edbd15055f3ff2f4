/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a tree that is being put is about to change, written down before the first change, so that
 * whoever comes after a worker that was killed can take all of it back.
 *
 *   STATE_DIR/trees/t-…   is to be undone
 *   STATE_DIR/trees/d-…   is done: only the replaced files, under their hidden names, are to go
 *
 * The worker holds a lock on its journal for as long as it lives: a journal that can be locked has
 * lost its owner. The kernel keeps no order for us across a power cut, and neither do we: this is
 * about processes that die, not about machines.
 *
 * A journal is a list of strings, three for each step: what, where, hidden name.
 */

#include <stddef.h>
#include <sys/types.h>

#include "agent/file_path.h"
#include "base/buf.h"
#include "base/error.h"

enum { TREE_JOURNAL_MAX = 128 << 20 };

struct tree_journal {
    struct buf steps; /* BUF_INIT(TREE_JOURNAL_MAX) */
    int dir_fd;
    int fd;
    char name[PATH_NAME_SIZE];
};

#define TREE_JOURNAL_INIT                                                                          \
    {                                                                                              \
        .steps = BUF_INIT(TREE_JOURNAL_MAX), .dir_fd = -1, .fd = -1                                \
    }

/* Steps, in the order in which they will be done. */
void tree_journal_mkdir(struct tree_journal *journal, const char *path);
void tree_journal_create(struct tree_journal *journal, const char *path, ino_t inode);
/* The new content (inode) gets the hidden name, then changes places with what is at path. */
void tree_journal_swap(struct tree_journal *journal, const char *path, const char *hidden,
                       ino_t inode);

/* Makes it known. From here on, until done or undone, everything above may be done. */
int tree_journal_begin(struct tree_journal *journal, const char *state_dir, struct error *err);
/* The point of no return; then what was replaced is removed. */
int tree_journal_done(struct tree_journal *journal, const char *state_dir, struct error *err);
/* Takes back whatever was done of it. */
void tree_journal_undo(struct tree_journal *journal, const char *state_dir);
void tree_journal_release(struct tree_journal *journal);

/* Ends every journal whose worker is gone. */
void tree_journals_recover(const char *state_dir);
