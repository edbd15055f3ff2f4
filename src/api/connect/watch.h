/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watching directories: as a stream, and (for clients that ask from time to time) by watchers. */

#include "api/connect/box.h"

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
