/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The floor's cgroups: one parent per hierarchy, one child in each per sandbox.
 *
 * With v1 controllers there are four hierarchies (memory, cpu, pids, and the unified tree that
 * gives cgroup.kill); with pure v2 there is one. The last one is always the v2 tree.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

enum { CGROUP_TREES_MAX = 4 };

struct cgroup_tree {
    int count;
    int parent_fd[CGROUP_TREES_MAX];
    char name[64]; /* of the parents */
};

/* A sandbox's place: the v2 directory, which is cloned into, and for the others the files that join
 * them, opened by root. */
struct cgroup_place {
    char name[16];
    int count;
    int join_fd[CGROUP_TREES_MAX]; /* -1: the v2 directory */
    int unified_fd;                /* the v2 directory; belongs to the sandbox's root */
};

int cgroup_tree_open(struct cgroup_tree *tree, struct error *err);
void cgroup_tree_release(struct cgroup_tree *tree);

/* owner: who may make children below the v2 directory. */
int cgroup_place_make(const struct cgroup_tree *tree, const char *name, uid_t owner,
                      struct cgroup_place *ret_place, struct error *err);
int cgroup_place_kill(const struct cgroup_place *place, struct error *err);
void cgroup_place_remove(const struct cgroup_tree *tree, struct cgroup_place *place);

/* Whether pid 1 joins this hierarchy when it is born; its commands join the others. */
bool cgroup_joined_at_birth(const struct cgroup_tree *tree, int i);
