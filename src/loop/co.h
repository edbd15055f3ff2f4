/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Coroutines: handlers that read top to bottom on a loop that never blocks.
 *
 * A coroutine runs on a stack of its own (guard page below; stacks are pooled) until it waits; the
 * loop resumes it when what it waits for is there. Only one runs at a time, and only at the calls
 * below (and whatever is built on them) can another one run in between.
 *
 * Cancelling resumes a coroutine with an error: its current wait and every later one fail with
 * CANCELLED, so its cleanups run. A stack is never freed under a coroutine.
 *
 * Calls that wait must be made on a coroutine (co_self() != NULL).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/errand.h"
#include "loop/loop.h"

struct co;

enum { CO_STACK_SIZE = 256 * 1024 };

/* Starts fn(arg) at once, on the caller's turn: co_spawn() returns at its first wait or its end.
 * ret_co may be NULL; the pointer is valid until fn returns. */
int co_spawn(struct loop *loop, void (*fn)(void *arg), void *arg, struct co **ret_co,
             struct error *err);
struct co *co_self(const struct loop *loop); /* the running one; NULL on the loop's own stack */
/* On whose behalf the running one goes on: what it was started with is a copy of its starter's.
 * NULL on the loop's own stack. */
struct errand *co_errand(const struct loop *loop);
void co_cancel(struct co *co); /* fine on one that was cancelled before */

/* What the running coroutine works for: a request's record, say, for code far below its handler.
 * NULL at first; tasks (loop/task.h) begin with their starter's. Borrowed. NULL on the loop's own
 * stack. */
void co_set_local(const struct loop *loop, void *local);
void *co_local(const struct loop *loop);

/* Waits until fd has one of the events, or fails with TIMEOUT after timeout_ms (-1: never). */
int co_wait_fd(struct loop *loop, int fd, uint32_t events, int64_t timeout_ms, struct error *err);
int co_sleep(struct loop *loop, int64_t ms, struct error *err);

/* A place to wait at for others. Start from a zeroed struct; nobody may wait there when it goes. */
struct co_cond {
    struct co_waiter *first;
    struct co_waiter *last;
};

int co_cond_wait(struct loop *loop, struct co_cond *cond, int64_t timeout_ms, struct error *err);
void co_cond_wake(struct co_cond *cond);     /* the one that waits longest */
void co_cond_wake_all(struct co_cond *cond); /* resumed at the loop's next turn, in order */
