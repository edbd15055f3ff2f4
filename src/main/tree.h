/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Walking over a folder, entry by entry, without ever following a symbolic link: parts of the data
 * folder belong to cellad, and root, who walks here, must not be led out of it.
 */

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

enum tree_moment {
    TREE_FILE,  /* anything that is no directory */
    TREE_ENTER, /* a directory, before what is in it */
    TREE_LEAVE, /* and after */
};

/* path is relative to where the walk began; name is the entry in the folder dir_fd. */
typedef int tree_visitor(void *ctx, enum tree_moment moment, int dir_fd, const char *name,
                         const char *path, const struct stat *st, struct error *err);

/*
 * Visits what is in the folder dir_fd, which stays the caller's; paths begin with `prefix` ("" or a
 * path). A folder called "objects" comes after its neighbours: what git keeps in there is there
 * before anything names it, so a copy of a living repository in that order is whole.
 * FILE_NOT_FOUND when an entry goes away meanwhile.
 */
int tree_walk(int dir_fd, const char *prefix, tree_visitor *visit, void *ctx, struct error *err);

/* Whether the entry is a folder. Not every file system says so when a folder is read (d_type). */
bool tree_is_folder(int dir_fd, const char *name);

/* Removes a folder with all that is in it. Fine when it is not there. */
int tree_remove(int dir_fd, const char *name, struct error *err);

/* Copies folders and regular files (their bytes, modes and owners) into the folder to_fd, which
 * nobody else writes to. Anything else is left out, and so are names of what is only being made
 * (tmp_…, .tmp-…, ….new, ….lock). */
int tree_copy(int from_fd, int to_fd, struct error *err);

/* One file; the new one must not exist. */
int tree_copy_file(int from_dir, const char *from, int to_dir, const char *to, struct error *err);
