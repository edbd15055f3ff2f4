/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Small file operations below a directory fd. Names come from the warden's own tables or were
 * checked (plan.h); nothing here follows a symlink in the last component.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Writes to a file that exists (a knob of cgroupfs or procfs), in one write(2). */
int file_write_at(int dirfd, const char *path, const char *text, struct error *err);

/* The content, cut at size - 1 and NUL-terminated. */
int file_read_at(int dirfd, const char *path, char *out, size_t size, struct error *err);

/* Makes or replaces a file whole: readers see the old or the new one. */
int file_replace_at(int dirfd, const char *name, const char *text, mode_t mode, struct error *err);

/* mkdir; a directory that is there already is fine, and keeps its mode. */
int dir_make_at(int dirfd, const char *name, mode_t mode, struct error *err);
int dir_open_at(int dirfd, const char *name, int *ret_fd, struct error *err);

/* Removes a file or a whole tree, staying on its file system; what is not there is fine. */
int tree_remove_at(int dirfd, const char *name, struct error *err);

/*
 * Calls fn for each entry but . and .. until it returns non-zero; returns that, 0 at the end, or
 * -1 with the error when the directory cannot be read (ENOENT counts as empty). fn may unlink
 * the entry that it is called for.
 */
typedef int (*dir_entry_fn)(int dirfd, const char *name, void *arg);
int dir_each(int dirfd, const char *name, dir_entry_fn fn, void *arg, struct error *err);
/* The same without what is certainly no directory. */
int dir_each_dir(int dirfd, const char *name, dir_entry_fn fn, void *arg, struct error *err);
