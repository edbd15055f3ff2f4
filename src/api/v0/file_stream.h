/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lists and trees of files, written while they are read: however long they are, little is held. */

#include "api/v0/file_json.h"
#include "api/v0/filesystem.h"
#include "sandbox/file_tree.h"

/* Answers with what is in a directory: what is no directory in it under "files", the rest under
 * "subdirectories". */
int file_stream_directory(struct http_exchange *x, const struct file_place *place,
                          const struct file_shape *shape, struct error *err);

/* Answers with a tree: every directory as above, with what is in its subdirectories in the same
 * way, down to those that were not looked into; "truncated": true when there is more. message: a
 * further member; NULL: none. UNAVAILABLE when the sandbox's entries make no tree. */
int file_stream_tree(struct http_exchange *x, const char *path, const struct file_tree *tree,
                     const struct file_shape *shape, const char *message, struct error *err);
