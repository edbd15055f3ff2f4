/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reading a repository: its commits, and what differs between two of them. What git says is read
 * with bounds, since the names and contents in it are a stranger's. */

#include "sandbox/history.h"
#include "sandbox/history_repo.h"

int repository_log(struct repository *r, size_t limit, size_t offset, struct arena *arena,
                   struct history_page *ret_page, struct error *err);

/* The same from what `git log` says: with NULs, \1 before a commit, and limit + 1 of them. */
int history_log_read(struct git *git, size_t limit, struct arena *arena,
                     struct history_page *ret_page, struct error *err);

/* Fills files, count and cut of *diff. */
int repository_diff(struct repository *r, const char *from, const char *to, struct arena *arena,
                    struct history_diff *diff, struct error *err);

/* The execution that made a commit; its name's place is EXECUTION_ID_SIZE bytes. */
int repository_execution_of(struct repository *r, const char *commit, char *ret_execution,
                            struct error *err);
/* The commit before; its own name for the first one. */
int repository_parent(struct repository *r, const char *commit, char ret_parent[GIT_NAME_SIZE],
                      struct error *err);
