/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happens to files of a sandbox, as it happens. On coroutines, and with paths, as in files.h.
 *
 * A slow reader costs no memory: what it does not take waits in the socket, then in the agent's
 * bounded queue, and then is dropped, which is told by OP_OVERFLOW.
 */

#include "sandbox/files.h"

/* Starts watching a directory (with all below it, when recursive) or a file. ignore: a list of
 * globs of names or of paths below the watched one. Ended by file_transfer_end(). LIMIT_EXCEEDED
 * past WATCH_WORKERS_MAX in one sandbox. */
int file_watch_begin(struct sandboxes *s, const char *workspace, const char *name, const char *path,
                     bool recursive, struct slice ignore, struct file_transfer **ret_watch,
                     struct error *err);

/* The next event; its strings are valid until the next call. TIMEOUT when nothing happened for
 * timeout_ms: call again. UNAVAILABLE once the sandbox has stopped or the directory is gone. */
int file_watch_next(struct file_transfer *watch, int64_t timeout_ms, struct file_event *ret_event,
                    struct error *err);

/* "CREATE", "WRITE", "REMOVE", "RENAME", "CHMOD", "OVERFLOW" */
const char *file_op_text(uint64_t op);
