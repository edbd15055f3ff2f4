/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starting commands: what a request comes to (a plan, made by the agent), and the child's side,
 * from its birth to exec, which only carries the plan out.
 *
 * The child shares the agent's memory until it execs (spawn.h says why), so the plan belongs to it
 * until the status descriptor closes: then it runs its program, or has gone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "agent/confine.h"
#include "agent/users.h"
#include "base/error.h"
#include "base/slice.h"
#include "wire/birth.h"
#include "wire/messages.h"

enum { EXEC_DEFAULTS = 7 };

/* Descriptors and limits that the child is born with. */
struct exec_birth {
    int join_fds[AGENT_JOIN_MAX + LIMIT_FDS]; /* the sandbox's, and its own (limits.h) */
    unsigned join_count;
    int tree_fd;  /* the command's cgroup directory, -1: none */
    bool in_tree; /* it was born there */
    int tty_fd;   /* -1: none; else its controlling terminal, and all three of the next */
    int stdin_fd; /* -1: /dev/null */
    int stdout_fd;
    int stderr_fd;
    int status_fd;
    struct rlimit nofile;
    struct confinement confinement;
};

struct exec_plan {
    struct exec_birth birth;
    char *payload; /* what the strings of exec point into */
    struct agent_exec exec;
    struct user user;
    bool change_ids;
    const char *cwd;
    char **env;
    char *defaults[EXEC_DEFAULTS];
    char **words; /* the program's arguments; NULL: only the shell can make sense of the command */
    char **programs; /* where to look for it, in order */
    char *programs_text;
    char *shell[4]; /* when it is a command line and not a program with arguments */
    char *stack;    /* the child's, of launch.c */
};

/* What went wrong before exec, as it comes out of the status descriptor. */
struct exec_failure {
    uint32_t step;
    int32_t sys;
};

/* What can be said about a request without starting anything: INVALID_ARGUMENT, INVALID_PATH. */
int exec_check(const struct agent_exec *exec, struct error *err);

/* A plan for an AGENT_EXEC payload, without its birth. The memo is for the user's lookup. */
struct exec_plan *exec_plan_new(struct slice payload, struct user_memo *memo, struct error *err);
void exec_plan_free(struct exec_plan *plan);

/* Becomes the command; arg is the plan. Touches nothing but the plan and its own stack, and calls
 * nothing of libc: not even errno is its own. */
void exec_child(void *arg);

/*
 * Turns a failure into an error. A program that cannot be executed is the command's own failure, as
 * a shell has it (it ended with 127 or 126): then this returns 0, and `text` (of `size`) is what
 * belongs on its stderr.
 */
int exec_explain(const struct exec_plan *plan, struct exec_failure failure, char *text, size_t size,
                 struct error *err);
