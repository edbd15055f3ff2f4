/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The history of a sandbox's files: what each execution (a command, a run of code) changed, what
 * differs between any two of them, and the way back.
 *
 * It is a bare git repository below the data folder (DATA/history/<id>), out of reach of what runs
 * in the sandbox, and it is written by `git fast-import` from what the agent tells of the files
 * (sandbox/history_tree.h). Tracked are /workspace and /home/user. An execution that changed
 * something there is a commit; one that changed nothing is remembered with the commit that it
 * found, so that every execution can be named in a diff and gone back to. A file outside of
 * executions (written by the file API, say) is part of the next one's commit.
 *
 * Execution ids are "exec_" and eight hexadecimal digits; with "python_run_" instead they mean the
 * same. "unknown" is the first commit, which stands for the sandbox as its image made it.
 *
 * Paths are shown relative to /workspace ("index.js"), or absolute ("/home/user/notes") outside of
 * it. They are bytes, and need not be UTF-8.
 *
 * What is not kept: what the sandbox's rules leave out (sandbox/history_rules.h), sockets, pipes
 * and devices. A rollback leaves them alone, too.
 *
 * Calls are made on coroutines. Those that ask something wait for what is being committed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "sandbox/sandbox.h"

enum { EXECUTION_ID_SIZE = 24 }; /* with its NUL */
#define HISTORY_FIRST_ID "unknown"

/* ---- executions ---- */

/* A new execution's id. No sandbox, no I/O: that it exists is written down at its end. */
void history_run_begin(char ret_execution[EXECUTION_ID_SIZE]);

/* Somebody is told the id before its end: it is written down now, so that it means something
 * whatever happens. */
void history_run_told(struct sandboxes *s, const char *workspace, const char *name,
                      const char *execution);

/*
 * It has ended, and nobody has been told yet. `dirty`: something may have changed since the last
 * time that the files were looked at (the agent says so); they are compared, and what differs is
 * committed, before this returns. Otherwise one short line is appended to a file. What goes wrong
 * is logged and made good by the next execution: a command is not worse for a history that cannot
 * be written.
 *
 * sandbox_exec() and its kin, terminals apart, do this by themselves, and tell the id in
 * struct agent_process; this is for what is run in other ways (code). The first execution of a
 * sandbox is looked into behind its back: whoever has business with the sandbox next waits for it.
 */
void history_run_end(struct sandboxes *s, const char *workspace, const char *name,
                     const char *execution, bool dirty);

/* Whether nothing has changed since the files were looked at last, as far as there are signs of it:
 * of what goes on, so that no end of a process says so. False when they never were. */
bool history_seems_clean(struct sandboxes *s, const char *workspace, const char *name);

/* Whether history is kept for it. */
bool history_enabled(struct sandboxes *s, const char *workspace, const char *name);

/* ---- looking ---- */

struct history_commit {
    const char *id;     /* of the execution; HISTORY_FIRST_ID */
    const char *commit; /* 40 hexadecimal digits */
    int64_t time_ms;
    const char *message;       /* one line: "Update files for sandbox execution" */
    const struct slice *files; /* what it changed, in order */
    size_t file_count;
    bool files_cut; /* there are more: than HISTORY_FILES_SHOWN, or than an answer has room for */
};

struct history_page {
    const struct history_commit *commits; /* newest first */
    size_t count;
    bool more; /* there are older ones */
};

/* `limit` of them (1…HISTORY_PAGE_MAX), `offset` newer ones left out. SANDBOX_NOT_FOUND,
 * HISTORY_DISABLED. The sandbox need not run. */
int history_list(struct sandboxes *s, const char *workspace, const char *name, size_t limit,
                 size_t offset, struct arena *arena, struct history_page *ret_page,
                 struct error *err);

struct history_file_diff {
    struct slice path; /* of the later one, when it was renamed */
    struct slice text; /* as `git diff` prints it */
    bool cut;          /* too much: only its head is there */
};

struct history_diff {
    const char *from, *to; /* executions */
    const struct history_file_diff *files;
    size_t count;
    bool cut; /* there are more than are shown */
};

/*
 * What became of the files from one execution to another, either of which may be the earlier one.
 * `to` NULL: the newest commit; `from` NULL: the one before `to`. EXECUTION_NOT_FOUND,
 * INVALID_ARGUMENT for what is no id, HISTORY_DISABLED.
 */
int history_diff(struct sandboxes *s, const char *workspace, const char *name, const char *from,
                 const char *to, struct arena *arena, struct history_diff *ret_diff,
                 struct error *err);

/* ---- going back ---- */

struct history_left {
    struct slice path; /* as people see it */
    const char *reason;
};

struct history_rollback {
    char execution[EXECUTION_ID_SIZE]; /* the rollback's own: going back to it is always possible,
                                        * and going back to the one before it undoes it */
    const char *target;                /* the execution that was asked for, as "exec_…" */
    const char *commit;                /* that the files are now at */
    const char *saved;         /* execution under which changes were committed first; NULL: none */
    const struct slice *files; /* that were changed by it */
    size_t file_count;
    bool files_cut;
    const struct history_left *left; /* what should have been changed, and was not */
    size_t left_count;               /* at most HISTORY_LEFT_SHOWN */
    uint64_t left_total;
};

/*
 * Makes the tracked files what they were at the end of an execution, as far as that can be done
 * without losing anything that history does not keep. What was not committed is committed first;
 * the rollback is a commit of its own. What the rules ignore, those of now or of then, is neither
 * touched nor brought back. The sandbox has to run: NOT_RUNNING. EXECUTION_NOT_FOUND,
 * HISTORY_DISABLED, ROLLBACK_BLOCKED when nothing of it could be done (and then there is no commit
 * of it).
 */
int history_rollback(struct sandboxes *s, const char *workspace, const char *name,
                     const char *execution, struct arena *arena,
                     struct history_rollback *ret_rollback, struct error *err);
