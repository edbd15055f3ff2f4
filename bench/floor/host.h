/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the floor program prepares once and every one of its sandboxes uses: the btrfs volume, the
 * lower layers, the /dev template, the parent cgroups, the compiled seccomp filter, the init.
 *
 * Everything is made below one directory that the caller owns, in a private mount namespace, so
 * that whatever happens to the program its mounts and its loop device go away with it.
 */

#include <linux/filter.h>

#include "base/error.h"
#include "floor/cgroup.h"

struct host {
    char dir[256];
    int volume_fd; /* root of the btrfs volume */
    int skeleton_fd;
    int mask_fd; /* the layer above /usr that hides what has to be hidden; empty here */
    int usr_fd;
    int dev_fd;
    int init_fd; /* the init's binary */
    struct cgroup_tree cgroups;
    struct sock_fprog filter;
    unsigned next; /* number of the next sandbox */
};

/* dir: an existing, empty directory. init, command: paths of the init and of the static binary that
 * will be at /workspace/true inside. */
int host_init(struct host *host, const char *dir, const char *init, const char *command,
              struct error *err);

/* Undoes what host_init() did, also half-way; accepts a zeroed struct with fds of -1. */
void host_release(struct host *host);

#define HOST_EMPTY                                                                                 \
    (struct host)                                                                                  \
    {                                                                                              \
        .volume_fd = -1, .skeleton_fd = -1, .mask_fd = -1, .usr_fd = -1, .dev_fd = -1,             \
        .init_fd = -1                                                                              \
    }
