/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths of the sandbox, resolved by openat2() below its root, without magic links (/proc/PID/fd
 * and the like would lead a worker to files of its own). All paths are absolute.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/limits.h"

enum { PATH_NAME_SIZE = 256 };

/* INVALID_PATH unless it is absolute and short enough. */
int path_check(const char *path, struct error *err);

/* INVALID_ARGUMENT unless it is FILE_MODE_DEFAULT or up to 07777. */
int path_check_mode(const char *path, uint64_t mode, struct error *err);

/* Opens it; flags as of open(), O_CLOEXEC is added. Sets errno alone, so that a caller can choose
 * its words. */
int path_open(const char *path, uint64_t flags);

/* A directory and a name in it. */
struct path_place {
    int dir_fd;
    char dir[PATH_BYTES_MAX];
    char name[PATH_NAME_SIZE];
};

/* Cuts the last name off: slashes at the end do not count; no name at all ("/"), "." and ".."
 * are INVALID_PATH. Opens nothing. */
int path_split(const char *path, struct path_place *ret_place, struct error *err);

/* Opens the longest prefix of the path that is there as a directory (O_PATH); *ret_len is where it
 * ends. Sets errno alone. */
int path_open_nearest(const char *path, size_t *ret_len);

struct path_owner {
    uid_t uid;
    gid_t gid;
};

/* Opens a directory (O_PATH), making it and its parents (0755) where they are missing; those are
 * the owner's (NULL: root's). */
int path_make_dirs(const char *path, const struct path_owner *owner, int *ret_fd,
                   struct error *err);
