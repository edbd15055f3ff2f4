/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * File workers, seen from the agent: a connection that is about files is handed to a child, which
 * serves it with plain blocking code. A slow disk or a fifo holds up that connection alone.
 */

#include <sys/types.h>

#include "base/error.h"
#include "base/slice.h"

struct agent;

/* Forks a worker that owns a copy of the connection; `received` are the bytes read from it so
 * far. LIMIT_EXCEEDED past FILE_WORKERS_MAX. */
int files_start_worker(struct agent *agent, int fd, struct slice received, struct error *err);

/* A child was reaped: perhaps one of ours. */
void files_worker_reaped(struct agent *agent, pid_t pid);

void files_end_workers(struct agent *agent);
