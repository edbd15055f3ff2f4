/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * File workers, seen from the agent: a connection that is about files is handed to a child, which
 * serves it with plain blocking code. A slow disk or a fifo holds up that connection alone.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/slice.h"

struct agent;

enum file_worker_kind { WORKER_FILES, WORKER_WATCH, WORKER_HISTORY, WORKER_KINDS };

struct file_worker_child {
    pid_t pid;
    enum file_worker_kind kind;
};

struct file_workers {
    struct file_worker_child items[FILE_WORKERS_MAX + WATCH_WORKERS_MAX + HISTORY_WORKERS_MAX];
    unsigned count;
    unsigned of_kind[WORKER_KINDS];
    pid_t housekeeper; /* 0: none */
    uint64_t house_at; /* monotonic ms; 0: no need */
};

/* Puts away what an agent before this one left behind. Returns when that is done. */
void files_start(struct agent *agent);

/* Forks a worker that owns a copy of the connection, whose first frame is of that type; `received`
 * are the bytes read from it so far. LIMIT_EXCEEDED past FILE_WORKERS_MAX, WATCH_WORKERS_MAX,
 * HISTORY_WORKERS_MAX of a kind. */
int files_start_worker(struct agent *agent, int fd, uint16_t type, struct slice received,
                       struct error *err);

/* A child was reaped: perhaps one of ours. */
void files_worker_reaped(struct agent *agent, pid_t pid, int status);

/* When files_tick() wants to be called; UINT64_MAX: never. */
uint64_t files_deadline(const struct agent *agent);
void files_tick(struct agent *agent, uint64_t now);

void files_end_workers(struct agent *agent);
