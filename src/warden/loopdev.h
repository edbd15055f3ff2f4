/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Loop devices. A file must never be attached twice: two file systems on it would destroy it. */

#include <stddef.h>

#include "base/error.h"

enum { LOOP_PATH_SIZE = 32 };

/* Attaches the file to a free device, which goes by itself when its last user does. *ret_fd keeps
 * it until the caller has mounted it. */
int loopdev_attach(const char *file, char ret_path[LOOP_PATH_SIZE], int *ret_fd, struct error *err);

/* Calls fn with the path of each loop device that the file is attached to, and with a descriptor of
 * it: while that is open, or a copy of it, the device stays the file's. A path alone may be
 * another's a moment later. */
typedef int (*loopdev_fn)(const char *path, int fd, void *arg);
int loopdev_each(const char *file, loopdev_fn fn, void *arg, struct error *err);

/* Makes the device refuse discard, which would punch holes into its file: blocks that the file
 * gives back may be somebody else's when they are needed again. */
int loopdev_refuse_discard(const char *path, struct error *err);
