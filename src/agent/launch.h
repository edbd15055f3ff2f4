/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starting commands, the agent's side: pipes, the command's cgroup, and the birth of a child that
 * carries a plan out (exec.h).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/tree.h"
#include "agent/users.h"
#include "base/error.h"
#include "base/slice.h"

struct exec_plan;
struct limit_group;

struct launch {
    pid_t pid;
    int status_fd; /* a struct exec_failure comes out, or the end of stream: it has begun */
    int stdout_fd; /* -1, both, on a terminal */
    int stderr_fd;
    int stdin_fd; /* -1: it has none */
    struct tree tree;
    struct limit_group *group; /* NULL: it has no limits that need one */
    struct exec_plan *plan;    /* until the status descriptor has ended: launch_begun() */
};

/* What launches share. */
struct launch_pad {
    struct tree_pool trees;
    struct user_memo memo;
    char *idle_stack;   /* one is kept */
    unsigned under_way; /* children that have not exec'ed yet */
    int oom_fd;         /* the agent's own oom_score_adj; -1: cannot be had */
};

/* Once, before anything runs in the sandbox. */
void launch_init(struct agent *agent);
void launch_end(struct agent *agent);

/* Starts the child for an AGENT_EXEC payload. *ret_launch owns its fds; the child is reaped by
 * the caller. */
int launch_start(struct agent *agent, struct slice payload, struct launch *ret_launch,
                 struct error *err);

/* The same on a terminal (borrowed), which becomes its stdin, stdout and stderr and the controlling
 * terminal of its session. */
int launch_start_on(struct agent *agent, struct slice payload, int tty_fd,
                    struct launch *ret_launch, struct error *err);

/* The child has exec'ed, or is gone: what it used of the agent's memory is free. NULL is fine. */
void launch_begun(struct agent *agent, struct exec_plan *plan);

void launch_release(struct agent *agent, struct launch *launch);
