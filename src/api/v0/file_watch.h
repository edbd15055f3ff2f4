/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watching files, for every facade that has it. */

#include "api/v0/filesystem.h"

/* Whether the last part of the place's path is two stars, which are taken off: all below. */
bool file_watch_suffix(struct http_exchange *x, struct file_place *place);

/* Streams events as the answer: lines of {op, name, path, error}, or server-sent events when the
 * client accepts those. ?ignore= is read here. `keepalive` is the line that shows an idle stream to
 * be alive; one comes first, so that the client knows the watch stands. */
int file_watch_stream(struct http_exchange *x, const struct file_place *place, bool recursive,
                      const char *keepalive, struct error *err);
