/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The directories that one watch looks at, and their inotify watches. A directory's path is not
 * stored but followed up to the root, so that nothing has to be renamed when names change above.
 */

#include <stdbool.h>

#include "agent/file_path.h"

struct watch_dir {
    struct watch_dir *parent; /* NULL: the root */
    struct watch_dir *child;
    struct watch_dir *next; /* sibling */
    struct watch_dir *hash_next;
    struct watch_dir *scan_next; /* in the list of those that are to be looked into */
    bool scans;
    int wd; /* -1: not watched yet */
    char name[];
};

enum { WATCH_BUCKETS = 1024 };

struct watch_tree {
    int fd; /* inotify */
    unsigned count;
    struct watch_dir *root;
    struct watch_dir *buckets[WATCH_BUCKETS];
    struct watch_dir *scan_first, *scan_last;
};

/* A tree with its root, not yet watched. */
int watch_tree_init(struct watch_tree *tree, struct error *err);
void watch_tree_release(struct watch_tree *tree);

struct watch_dir *watch_tree_find(struct watch_tree *tree, int wd);
struct watch_dir *watch_dir_child(const struct watch_dir *dir, const char *name);

/* Its path from the root ("" for itself), and with a name behind it; false when it is too long. */
bool watch_dir_path(const struct watch_dir *dir, const char *name, char out[PATH_BYTES_MAX]);

/* A new directory, put on the list of those to look into; what had its name is forgotten. NULL when
 * there are too many (errno ENOSPC) or no memory. */
struct watch_dir *watch_tree_add(struct watch_tree *tree, struct watch_dir *parent,
                                 const char *name);
/* The next one to look into; NULL: none. */
struct watch_dir *watch_tree_next(struct watch_tree *tree);
/* Watches what dir_fd is at as `dir`. Whatever else was watched as the same inode is forgotten: the
 * newest name is the right one. Sets errno alone. */
int watch_tree_watch(struct watch_tree *tree, struct watch_dir *dir, int dir_fd);
/* Forgets a directory and all below it. */
void watch_tree_forget(struct watch_tree *tree, struct watch_dir *dir);
