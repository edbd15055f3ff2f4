/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The git program as a child: plumbing commands on a bare repository, fed and read by a coroutine
 * that never blocks the loop. git sees nothing of the user's or the machine's configuration, no
 * home, no hooks, no terminal, and no descriptor but its own three.
 *
 * Whatever is passed as an argument is ours or was checked (hexadecimal names, numbers); paths of a
 * sandbox's files only go through stdin, quoted, and come back with NULs behind them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "loop/loop.h"
#include "loop/work.h"

enum { GIT_NAME_LEN = 40, GIT_NAME_SIZE = GIT_NAME_LEN + 1 }; /* of an object, in hexadecimal */

struct git_program {
    struct loop *loop;
    struct workers *workers; /* they start children */
    char path[256];
    const int *groups; /* that a child joins: files that take its pid … */
    size_t group_count;
    bool unconfined;     /* for tests, whose programs in git's place are shell scripts */
    int64_t deadline_ms; /* of a command that only answers a question; 0: GIT_QUESTION_MS */
};

enum {
    GIT_QUESTION_MS = 60 * 1000,  /* from its start to its end: a log, a diff, a list … */
    GIT_LONG_MS = 10 * 60 * 1000, /* … and what writes, packs, or is fed by a sandbox */
};

/* Looks for git where programs are. FILE_NOT_FOUND says what to install. */
int git_program_find(char out[256], struct error *err);

/* Those that a killed cellad has left at work below this folder; nobody else may be at work yet.
 * How many there were. */
unsigned git_end_orphans(int histories_fd);

struct git { /* a child; start from a zeroed struct and git_end() it */
    struct loop *loop;
    struct workers *workers;
    pid_t pid;   /* 0: none */
    int in, out; /* its stdin and stdout; -1: closed */
    int pidfd;
    int messages;                    /* what it says on stderr */
    int64_t patience_ms;             /* without a byte moving */
    int64_t started_ms, deadline_ms; /* by the loop's clock */
    bool quiet;                      /* its end is not worth a word: somebody else has ended it */
    struct buf pending;              /* to be written */
    struct buf received;             /* read, and not taken yet */
    size_t taken;                    /* … but for so much of it */
    bool ended;                      /* there is no more to read */
};

/* argv: the command and its arguments, NULL at the end. UNAVAILABLE: it cannot be started now. It
 * has a deadline: past that every call fails with TIMEOUT, and git and its children are killed. */
int git_start(struct git_program *program, int repository_fd, const char *const argv[],
              struct git *ret_git, struct error *err);

/* It may take longer than a question does. */
void git_allow(struct git *git, int64_t deadline_ms);

/* No file that it writes grows past that: it fails with QUOTA_EXCEEDED. */
void git_limit_files(struct git *git, uint64_t bytes);

/* To its stdin: collected, and sent when there is enough, or with git_flush(). */
int git_put(struct git *git, const void *data, size_t len, struct error *err);
int git_puts(struct git *git, const char *text, struct error *err);
int git_flush(struct git *git, struct error *err);
/* There is no more for it to read. */
int git_close_input(struct git *git, struct error *err);

/* Up to a mark that is a byte, without it, valid until the next call. 1: there it is; 0: the end of
 * output came before, and nothing but it. PAYLOAD_TOO_LARGE past `max` bytes. */
int git_until(struct git *git, char mark, size_t max, struct slice *ret_text, struct error *err);
/* At most `max` bytes, whatever is there, valid until the next call; an empty slice at the end. */
int git_some(struct git *git, size_t max, struct slice *ret_data, struct error *err);

/* Waits for its end, which has to be a good one: INTERNAL with its words, QUOTA_EXCEEDED when the
 * disk is full, UNAVAILABLE when it could not run, was killed or something else was short. What it
 * still writes to stdout is dropped. */
int git_finish(struct git *git, struct error *err);
/* Kills what still runs. Fine on one that never was. */
void git_end(struct git *git);
#define _cleanup_git_ __attribute__((cleanup(git_end)))

/* One command whose output is one line, or none: ret_line of GIT_NAME_SIZE or more bytes. */
int git_line(struct git_program *program, int repository_fd, const char *const argv[],
             char *ret_line, size_t size, struct error *err);
