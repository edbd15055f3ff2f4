/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files and directories as Blaxel's clients see them: octal permissions, RFC 3339 times, a name
 * beside each path. Strings are borrowed until the document is written. */

#include "api/v0/file_json.h"
#include "http/server.h"
#include "wire/messages.h"

/* Answers with a file and its content. What is no UTF-8 becomes U+FFFD in "content", and is exact
 * in "contentBase64". entry->path is absolute. */
int box_file_reply(struct http_exchange *x, const struct file_entry *entry, struct slice content,
                   struct error *err);

/* Lists and trees: {path, name, files, subdirectories}. */
extern const struct file_shape box_file_shape;
