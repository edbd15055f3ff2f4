/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the handlers of /filesystem/{path} share. */

#include <yyjson.h>

#include "api/api.h"
#include "base/buf.h"
#include "sandbox/files.h"

/* Which file of which sandbox. */
struct file_place {
    struct sandboxes *sandboxes;
    const char *workspace;
    const char *sandbox;
    const char *path; /* absolute and normalized */
};

/* The place that the route's parameters name. */
struct api_call;
struct route_params;
int file_place_find(struct http_exchange *x, const struct route_params *params,
                    const struct api_call *call, struct file_place *ret_place, struct error *err);

static inline void cleanup_file_transfer(struct file_transfer **t)
{
    file_transfer_end(*t);
}

/* The file's bytes (or the range of them that was asked for) as the answer, and the request's body
 * as the file, in constant memory. as_attachment: with a Content-Disposition for browsers. */
int file_send_raw(struct http_exchange *x, const struct file_place *place, bool as_attachment,
                  struct error *err);
int file_receive_raw(struct http_exchange *x, const struct file_place *place, struct error *err);
/* The request's body into a transfer that takes content, up to its commit. */
int file_receive_body(struct http_exchange *x, struct file_transfer *t, struct error *err);

/* A file that is told as JSON: what it is, and its content. PAYLOAD_TOO_LARGE for one of more than
 * FILE_JSON_MAX bytes, which is what `content` has to have room for. */
int file_read_for_json(const struct file_place *place, struct arena *arena,
                       struct file_entry *ret_entry, struct buf *content, struct error *err);

/* {"path", "message"} */
int file_reply_message(struct http_exchange *x, const struct file_place *place, const char *message,
                       struct error *err);

/* What a PUT of a file or directory says: the body of /filesystem/{path}, and each value of a
 * tree's. */
struct file_put {
    struct slice content; /* decoded */
    bool is_directory;
    uint64_t mode; /* FILE_MODE_DEFAULT when none was given */
};
int file_put_read(struct arena *arena, yyjson_val *object, struct file_put *ret_put,
                  struct error *err);
/* Makes it so, and answers. */
int file_put_make(struct http_exchange *x, const struct file_place *place,
                  const struct file_put *put, struct error *err);

/* ?recursive= or {"recursive": …}. */
int file_wants_recursive(struct http_exchange *x, bool fallback, bool *ret_recursive,
                         struct error *err);

/* The tree at the place, so many levels of it; and the same as the answer. */
struct file_tree;
int file_tree_of(struct http_exchange *x, const struct file_place *place, unsigned depth,
                 struct file_tree *ret_tree, struct error *err);
int file_reply_tree(struct http_exchange *x, const struct file_place *place, unsigned depth,
                    struct error *err);

/* What a PUT of a tree says; place->path becomes what the body says of it. */
struct file_tree_put;
int tree_put_read(struct http_exchange *x, struct file_place *place,
                  struct file_tree_put **ret_items, size_t *ret_count, struct error *err);

/* {path: text, or an object as a PUT of one file takes it}, below root (NULL: wherever the paths
 * say). files NULL: none. INVALID_PATH, INVALID_ARGUMENT, LIMIT_EXCEEDED; the message names the
 * file. */
int tree_files_from_json(struct arena *arena, yyjson_val *files, const char *root,
                         struct file_tree_put **ret_items, size_t *ret_count, struct error *err);

/* Uploads, for those who find the place or the part's bytes in another way: starting one at a
 * place, opening the part that the request names, and closing it with the answer. */
int upload_start(struct http_exchange *x, const struct file_place *place, struct error *err);
int upload_part_open(struct http_exchange *x, const struct route_params *params,
                     const struct api_call *call, struct file_transfer **ret_transfer,
                     struct error *err);
int upload_part_close(struct http_exchange *x, struct file_transfer *t, struct error *err);
