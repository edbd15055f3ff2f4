/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files and directories as Blaxel's clients see them: octal permissions, RFC 3339 times, a name
 * beside each path. Strings are borrowed until the document is written. */

#include <yyjson.h>

#include "base/arena.h"
#include "sandbox/file_tree.h"
#include "wire/messages.h"

/* A file with its content. What is no UTF-8 becomes U+FFFD in "content", and is exact in
 * "contentBase64". entry->path is absolute. */
void box_file_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                   const struct file_entry *entry, struct slice content);

/* {path, name, files, subdirectories}; the items' paths are names alone. */
void box_directory_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                        const char *path, const struct file_entry *items, size_t count);

/* A tree: every directory as above, with what is in its subdirectories in the same way. */
int box_tree_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root, const char *path,
                  const struct file_tree *tree, struct error *err);
