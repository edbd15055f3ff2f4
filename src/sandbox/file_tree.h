/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Trees of files: many at once. On coroutines, and with paths, as in files.h. Removing a tree is
 * sandbox_file_remove().
 */

#include <stdbool.h>

#include "sandbox/files.h"

struct file_tree {
    struct file_entry root;
    struct file_entry *entries; /* path is relative to the root; a directory stands right before
                                 * what is in it, names in order */
    size_t count;
    unsigned depth; /* levels that were looked at: directories at this depth were not gone into */
    bool cut;       /* there is more than fitted */
};

/* Bytewise, but '/' before everything else: the order of entries. */
int file_tree_compare(const char *a, const char *b);

/* get->depth: 1…TREE_DEPTH_MAX; 1 is the directory's own list. Links are not followed. */
int sandbox_tree_get(struct sandboxes *s, const char *workspace, const char *name,
                     const struct file_tree_get *get, struct arena *arena,
                     struct file_tree *ret_tree, struct error *err);

struct file_tree_put {
    const char *path; /* absolute and normalized */
    struct slice content;
    uint64_t mode; /* FILE_MODE_DEFAULT, or 0…07777 */
    bool is_directory;
};

/*
 * Makes `root` (a directory) and all of the items (sorted in place), or leaves everything as it
 * was. INVALID_ARGUMENT when two have the same path, or one is a file and on the way to another.
 * *ret_tree: what is there afterwards, `depth` levels of it; NULL: not wanted.
 */
int sandbox_tree_put(struct sandboxes *s, const char *workspace, const char *name, const char *root,
                     struct file_tree_put *items, size_t count, unsigned depth, struct arena *arena,
                     struct file_tree *ret_tree, struct error *err);
/* The same, and all of it, with the directories that are made, is the user's (a name in the
 * sandbox, or a number). INVALID_ARGUMENT when there is no such user. */
int sandbox_tree_put_as(struct sandboxes *s, const char *workspace, const char *name,
                        const char *root, const char *user, struct file_tree_put *items,
                        size_t count, struct arena *arena, struct error *err);
