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

/* What an object says of a file beside its path; size: of what was read of it. */
void file_attributes_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                          const struct file_entry *file, size_t size);

/* How a dialect shows files in lists and trees (file_stream.h). */
struct file_shape {
    /* A path as members of an object: of the directory that is asked about. */
    void (*path)(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                 const char *path);
    /* An entry of a list, as members of its object. entry->path counts from the directory. */
    void (*entry)(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                  const char *directory, const struct file_entry *entry);
};
extern const struct file_shape file_shape;
