/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this folder share: the loop's inside, and parking of coroutines. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "loop/co.h"
#include "loop/loop.h"

enum {
    LOOP_BATCH = 64,       /* events taken from the kernel at once */
    LOOP_IDLE_STACKS = 64, /* kept for the next coroutines */
    LOOP_IDLE_PIPES = 8,   /* kept for the next net_pump() */
};

struct pipe_pair {
    int read_fd;
    int write_fd;
};

struct loop {
    int epoll_fd;
    bool stopping;
    int64_t now;
    struct meters *meters; /* NULL: nothing is counted */
    uint64_t turn_ns;      /* when this turn began */

    struct timer **heap;
    unsigned timers;
    unsigned heap_cap;
    uint64_t timer_order;

    /* The batch that is being dispatched; watch_stop() takes a watch's events out of it. */
    struct epoll_event batch[LOOP_BATCH];
    int batch_len;
    int batch_next;

    struct co *current;
    struct co *ready_first;
    struct co *ready_last;
    struct co *idle_stacks;
    unsigned idle_stack_count;

    struct pipe_pair pipes[LOOP_IDLE_PIPES];
    unsigned pipe_count;
};

/* A pipe for splice(2), from the pool or new; given back with nothing in it, or closed. */
int loop_pipe_take(struct loop *loop, struct pipe_pair *ret_pipe, struct error *err);
void loop_pipe_give(struct loop *loop, struct pipe_pair pipe, bool empty);

/* Why a parked coroutine goes on. */
enum wake { WAKE_EVENT, WAKE_TIMEOUT, WAKE_CANCEL };

/* Parks the running coroutine until the first co_unpark(). One that was cancelled does not park
 * at all, unless the wait is not cancellable. timeout_ms -1: none. */
enum wake co_park(struct co *co, int64_t timeout_ms, bool cancellable);
/* Lets it go on at the loop's next turn; does nothing when it does not wait any more. */
void co_unpark(struct co *co, enum wake why);
/* 0 for WAKE_EVENT, else -1 with CANCELLED or TIMEOUT. */
int co_wake_error(enum wake why, int64_t timeout_ms, struct error *err);

/* Resumes what was ready when it was called. */
void co_run_ready(struct loop *loop);
void co_free_stacks(struct loop *loop);
