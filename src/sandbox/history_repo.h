/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is on disk of a sandbox's history, a folder DATA/history/<id>:
 *
 *   repository/   bare, of git's; made under another name and renamed
 *   manifest      the listing that led to its newest commit (sandbox/history_manifest.h); without
 *                 it files are compared by content
 *   executions    a line for each execution: its id, the commit that it ended at, and when. Only
 *                 ever appended to, until it is too long and its older half goes
 *
 * Everything in it may be torn by a crash of the machine; what git cannot read any more is set
 * aside (repository.torn: one of them, and never one with less in the place of one with more that
 * nobody has committed to) and begun anew. On coroutines: what may block is done by worker threads.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/history_git.h"
#include "sandbox/history_manifest.h"

struct repository { /* start from a zeroed struct; repository_close() it */
    struct git_program *git;
    int folder_fd;
    int fd;                   /* the bare one; -1: there is none yet */
    char head[GIT_NAME_SIZE]; /* "": there is no commit yet */
    unsigned packs;           /* when it was opened; each commit adds one */
    uint64_t bytes;           /* of them, likewise */
};

/* Opens it, made if it is missing and `make`. Without `make` a folder that is not there is
 * FILE_NOT_FOUND. `tidy`: what a killed git left behind is removed; nobody else may be at work. */
int repository_open(struct git_program *git, int histories_fd, const char *id, bool make, bool tidy,
                    struct repository *ret_repository, struct error *err);
/* Where its branch stands; "": nowhere. On a worker thread. */
int repository_read_head(int fd, char ret_head[GIT_NAME_SIZE], struct error *err);
/* Makes the bare one, if there is none. */
int repository_make(struct repository *r, struct error *err);
void repository_close(struct repository *r);
#define _cleanup_repository_ __attribute__((cleanup(repository_close)))

/* Whether all that its newest commits need is there; sets it aside otherwise, and 1 says so. An
 * error when there is no finding out now (git cannot be started, say): it stays as it is. */
int repository_check(struct repository *r, struct error *err);

/* The state of the newest commit. From the file when that is right, and was listed by these rules
 * (history_ignore_mark()'s), else from git, with its rules 0; an empty one when there is no commit.
 */
int repository_manifest(struct repository *r, uint64_t rules, struct manifest *ret_manifest,
                        struct error *err);
int repository_save_manifest(struct repository *r, const struct manifest *m, struct error *err);

/* The state of any commit, with the patterns of what was left out then. */
int repository_tree(struct repository *r, const char *commit, struct manifest *ret_manifest,
                    struct error *err);

/* ---- executions ---- */

#define EXECUTION_PENDING "........................................"

enum { EXECUTION_LINE_SIZE = 128 };

/* A line of the list, with its end; its length. `commit`: where it ended. ""; no commit yet, so the
 * first; EXECUTION_PENDING: its end comes, and until something else is said it means the first
 * commit from now on. */
size_t execution_line(char out[EXECUTION_LINE_SIZE], const char *execution, const char *commit,
                      int64_t time_ms);
/* Whether it is one, and whole. */
bool execution_line_valid(struct slice line);
/* Whole lines. One write(2), of all of them or of none. */
int executions_append(int histories_fd, const char *id, struct slice lines, struct error *err);
/* The newest one of all, if its end is to come. `out` of EXECUTION_ID_SIZE bytes; "": it is not. */
void executions_pending(struct repository *r, char *out);
/* "exec_7683de5a" from whatever form of it is asked for; INVALID_ARGUMENT. `out` of
 * EXECUTION_ID_SIZE bytes. HISTORY_FIRST_ID stays itself. */
int execution_normalize(const char *text, char *out, struct error *err);
/* What the list says of one, in the newest line that there is: "" when there is none. */
void executions_find(struct slice list, const char *execution, char ret_commit[GIT_NAME_SIZE],
                     int64_t *ret_time_ms);
/* The commit that an execution (normalized) ended at; "" while there is none. EXECUTION_NOT_FOUND.
 */
int repository_resolve(struct repository *r, const char *execution, char ret_commit[GIT_NAME_SIZE],
                       struct error *err);

/* ---- whole folders, on worker threads ---- */

/* Removes all of it, with what is in it. */
void history_folder_remove(struct git_program *git, int histories_fd, const char *id);
/* The same, on the thread that calls it. */
void history_folder_unlink(int histories_fd, const char *id);
/* What a history takes on the disk: packs and the list of files. */
uint64_t history_folder_bytes(int histories_fd, const char *id);
/* QUOTA_EXCEEDED where there is no room for so much more in it. */
int history_folder_room(struct git_program *git, int folder_fd, uint64_t bytes, struct error *err);
/* A second one of all of it, by hard links where nothing is ever written in place; it is there
 * whole or not at all. Fine when there is nothing, or the second one is there already. */
int history_folder_copy(struct git_program *git, int histories_fd, const char *from, const char *to,
                        struct error *err);
/* Removes the folders of those that keep() does not want, and what was half made or half removed.
 * Before anybody else is at work. */
void history_folders_sweep(struct git_program *git, int histories_fd,
                           bool (*keep)(void *ctx, const char *id), void *ctx);
