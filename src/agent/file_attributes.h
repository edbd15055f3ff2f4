/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Owners and extended attributes of files, as requests name them. */

#include "agent/file_path.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* A user of the sandbox, by name or number. INVALID_ARGUMENT when there is none. */
int file_owner(const char *user, struct path_owner *ret_owner, struct error *err);

/* Sets "user.name=value" … on an open file; those that it has besides stay. INVALID_ARGUMENT for a
 * name that is not the user's namespace. */
int file_attributes_set(int fd, struct slice attributes, const char *path, struct error *err);

/* Appends those whose name begins with the prefix, as a list, of `name` in the directory fd ("": of
 * fd itself, which may be O_PATH). What cannot be read, or does not fit, is left out: they are
 * notes on a file, and a file is shown without them rather than not at all. */
void file_attributes_get(int fd, const char *name, const char *prefix, struct buf *out);
