/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Walking a tree of directories in memory that does not grow with it: by directory fds, one open
 * per level, never through links, and not into /proc, /sys or cgroups from outside of them (they
 * have no end and no content). All of a directory is visited before what is below it.
 */

#include <stdbool.h>
#include <sys/stat.h>

#include "agent/file_path.h"

enum walk_next {
    WALK_ON,
    WALK_STOP, /* that was all */
    WALK_FAIL, /* with *err set */
};

struct walk_item {
    int dir_fd;
    const char *path; /* from the walk's root, without a slash at the front */
    const char *name; /* its last part */
    unsigned depth;   /* 1: in the root itself */
    struct stat st;   /* of itself: links are not followed */
};

struct walk_plan {
    unsigned depth_max;
    enum walk_next (*visit)(void *ctx, const struct walk_item *item, struct error *err);
    /* Whether a directory of that path and name is gone into; NULL: all are. */
    bool (*enters)(void *ctx, const char *path, const char *name);
    void *ctx;
    /* A directory was opened, and nothing of it was read yet; NULL: nobody wants to know. */
    void (*opened)(void *ctx, int fd);
    /* Something is deeper than it goes, or its path is too long; NULL: that is a cut. */
    void (*beyond)(void *ctx);
};

/*
 * Visits everything below the directory that fd is at (taken over). *ret_cut: whether something was
 * deeper than it went, or could not be read. What goes while it is looked at is not there.
 */
int walk(int fd, const struct walk_plan *plan, bool *ret_cut, struct error *err);
