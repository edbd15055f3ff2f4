/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watching directories: as a stream (watch.c), and, for clients that ask from time to time, by
 * watchers (watchers.c). */

#include "api/connect/box.h"
#include "sandbox/file_watch.h"

int watch_dir_method(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                     struct error *err);
int create_watcher_method(struct http_exchange *x, const struct connect_box *box,
                          yyjson_val *message, struct error *err);
int get_watcher_events_method(struct http_exchange *x, const struct connect_box *box,
                              yyjson_val *message, struct error *err);
int remove_watcher_method(struct http_exchange *x, const struct connect_box *box,
                          yyjson_val *message, struct error *err);

/* As Stat answers: filesystem.c's. */
int connect_look(const struct connect_box *box, const char *path, struct arena *arena,
                 struct file_entry *ret_entry, struct error *err);

/* --- what streams and watchers share --- */

struct watch_request {
    const char *path;
    bool recursive, include_entry;
};

int watch_request_read(struct http_exchange *x, const struct connect_box *box, yyjson_val *message,
                       struct watch_request *ret_request, struct error *err);
/* NOT_A_DIRECTORY for anything else: only directories are watched. */
int watch_request_begin(struct http_exchange *x, const struct connect_box *box,
                        const struct watch_request *request, struct file_transfer **ret_watch,
                        struct error *err);

/* FilesystemEvent. The name is the path below the watched directory `root`. NULL: an event that
 * these clients do not know. */
yyjson_mut_val *watch_event_json(const struct connect_box *box, struct arena *arena,
                                 yyjson_mut_doc *doc, const char *root, bool include_entry,
                                 const struct file_event *event);

/* Why a watch has ended: of a sandbox that goes on it is the directory that is gone. Returns -1. */
int watch_ended(const struct connect_box *box, struct arena *arena, const char *path,
                const struct error *why, struct error *err);
