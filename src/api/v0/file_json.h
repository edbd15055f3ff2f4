/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files and directories as clients see them, and permissions in their two notations: "rwxr-xr-x" in
 * answers, octal ("644", "0644", "1777") in requests. Strings are borrowed from the entries until
 * the document is written.
 */

#include <stdbool.h>

#include <yyjson.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/file_tree.h"
#include "wire/messages.h"

enum { PERMISSIONS_TEXT_SIZE = 10 };

/* As ls shows them, setuid, setgid and sticky bits included, without the letter for the type. */
void permissions_format(uint64_t mode, char out[PERMISSIONS_TEXT_SIZE]);
/* Three or four octal digits; INVALID_ARGUMENT otherwise. */
int permissions_parse(const char *text, uint64_t *ret_mode, struct error *err);

/* A file with its content: as text where it is UTF-8, in base64 (and "encoding" says so) otherwise
 * or when as_base64 asks for it. */
void file_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
               const struct file_entry *file, struct slice content, bool as_base64);

/* A directory: what is in it that is no directory under "files", the rest under "subdirectories".
 */
void directory_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                    const char *path, const struct file_entry *items, size_t count);

/* A tree: every directory as above, with what is in its subdirectories in the same way, down to
 * those that were not looked into; "truncated": true when there is more. UNAVAILABLE when the
 * sandbox's entries make no tree. */
int tree_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root, const char *path,
              const struct file_tree *tree, struct error *err);

/* The lists of a tree alone, with items of another shape: `add` appends one to a list. directory is
 * where the tree is, entry->path counts from there. */
typedef yyjson_mut_val *tree_item(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *list,
                                  const char *directory, const struct file_entry *entry);
int tree_json_of(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root, const char *path,
                 const struct file_tree *tree, tree_item *add, struct error *err);
