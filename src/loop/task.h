/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A second coroutine beside one's own, for what has two directions: one reads while the other
 * writes. Whoever starts a task ends it before it returns, so a task may work on its starter's
 * stack.
 *
 *     struct task t = {0};
 *     task_start(loop, &t, fn, arg, err)  …  task_stop(&t);
 */

#include "base/error.h"
#include "loop/co.h"

struct task { /* start from a zeroed struct */
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
    void *local;       /* the starter's, for co_local() */
    struct co *co;     /* NULL once it has ended */
    struct co *joiner; /* waits for that */
};

/* As co_spawn(): runs fn(arg) at once, up to its first wait. */
int task_start(struct loop *loop, struct task *task, void (*fn)(void *arg), void *arg,
               struct error *err);
/* Waits for its end, however long, cancelled or not. Fine on one that never started. */
void task_join(struct task *task);
/* Cancels it, then joins. */
void task_stop(struct task *task);
