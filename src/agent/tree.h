/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A command's process tree, as one thing that can be signalled, killed and seen to be gone.
 *
 * With cgroups it is a child cgroup `e<n>` of the sandbox's own, which nothing inside leaves
 * whatever it does with sessions. Without, it is the process group of the command's leader.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "agent/watch.h"
#include "base/error.h"

/*
 * Making and removing a cgroup costs more than starting a small program in it, so one that was left
 * empty is used again. Not one that was killed: some kernels kill at once what is born there later.
 */
enum { TREES_KEPT = 2 };

struct kept_tree {
    int fd;
    int events_fd;
    unsigned number;
};

struct tree_pool {
    struct kept_tree kept[TREES_KEPT];
    unsigned count;
    unsigned next_number;
};

struct tree {
    int parent_fd; /* borrowed: the sandbox's cgroup; -1: a process group */
    int fd;        /* the tree's own cgroup directory */
    int events_fd; /* its cgroup.events; -1: cannot be asked */
    unsigned number;
    bool killed;
    bool once; /* its group has limits of its own: it is not used again */
    struct tree_pool *pool;
    pid_t leader;         /* set by who forks it */
    struct watch changes; /* cgroup.events, while somebody waits for the end */
};

/* An empty cgroup below parent_fd (-1: none): one of the pool's, or (and always for `once`) a new
 * one. The pool starts zeroed and outlives the tree. */
int tree_make(struct tree *ret_tree, int parent_fd, struct tree_pool *pool, bool once,
              struct error *err);
void tree_pool_release(struct tree_pool *pool, int parent_fd);

/* Closes what is open. Removes nothing. */
void tree_release(struct agent *agent, struct tree *tree);

/* Sends a signal to every process of the tree; SIGKILL reaches also what is forked meanwhile. */
void tree_signal(struct tree *tree, int signal);

/* Gives the cgroup up (to the pool, or it is removed) if nothing runs in it any more: true when the
 * tree is gone. The leader has to be reaped before. */
bool tree_remove(struct tree *tree);

/* Has `ready` called whenever the tree may have become empty; tree_remove() tells. Without
 * cgroups there is nothing to watch: ask again after each reaped child. */
void tree_watch(struct agent *agent, struct tree *tree, watch_ready *ready);
/* To be called by `ready`: the kernel tells again only once the file has been read. */
void tree_acknowledge(struct tree *tree);
