/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the verbs about files share. */

#include <stdint.h>

#include "base/buf.h"
#include "cli/client.h"
#include "cli/command.h"

/* "…/sandbox/NAME", a route ("/filesystem") and the path behind it, whatever it is called. */
void file_target_at(const struct client *client, struct buf *target, const char *route,
                    const char *name, const char *path);

/* A file of this machine, or stdin for "-". *ret_length: -1 when it is not known. */
int file_open_source(const char *path, int *ret_fd, int64_t *ret_length, struct error *err);
/* Sends it as the body of the request that has begun, with progress. */
int file_send_source(struct invocation *inv, int fd, int64_t length, struct error *err);
