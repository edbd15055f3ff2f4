/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside a file worker: one connection, one request at a time, blocking.
 *
 * A verb (file_*.c) reads its message, works, and queues its answer; an error it returns becomes a
 * WIRE_ERROR. When the connection itself fails there is nobody left to tell: `lost` is set and
 * the worker ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/history_watch.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "wire/messages.h"

struct file_worker {
    int fd;
    struct slice received; /* bytes that the agent had read already; they come first */
    struct buf in;
    struct buf out;
    char *piece; /* WIRE_DATA_CHUNK bytes once content came in */
    bool lost;
    bool owed;             /* the sender's frames up to a FILE_END are still to come */
    const char *state_dir; /* what outlives a worker is kept there (agent/state_dir.h) */
    const struct history_watch *history; /* the agent's; its fd is -1 for who does not need it */
};

/* Serves the connection until its end. */
void file_worker_run(int fd, struct slice received, const char *state_dir,
                     const struct history_watch *history);

/* Reads exactly len bytes; -1 and `lost` at the end of the stream. */
int file_receive(struct file_worker *worker, void *to, size_t len, struct error *err);
int file_receive_header(struct file_worker *worker, struct frame_header *ret_header,
                        struct error *err);

/* Queues a frame; sends once enough is queued. */
int file_answer(struct file_worker *worker, const struct wire_schema *schema, uint32_t id,
                const void *msg, struct error *err);
/* Sends all that is queued. */
int file_flush(struct file_worker *worker, struct error *err);

/* The verbs. */
int file_stat(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_list(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_read(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_write(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_mkdir(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_remove(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_move(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_tree_get(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_tree_put(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_watch(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int file_find(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int upload_start(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int upload_part(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int upload_complete(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int upload_abort(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int upload_parts(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int upload_list(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int history_list(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int history_read(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int history_apply(struct file_worker *worker, uint32_t id, const void *msg, struct error *err);
int history_share_watch(struct file_worker *worker, uint32_t id, const void *msg,
                        struct error *err);
