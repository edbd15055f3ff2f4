/* SPDX-License-Identifier: Apache-2.0 */

/* Coroutines that somebody waits for. */

#include "loop/task.h"

#include <stddef.h>

#include "loop/state.h"

static void run(void *arg)
{
    struct task *task = arg;
    task->co = co_self(task->loop);
    co_set_local(task->loop, task->local);
    task->fn(task->arg);
    task->co = NULL;
    if (task->joiner != NULL)
        co_unpark(task->joiner, WAKE_EVENT);
}

int task_start(struct loop *loop, struct task *task, void (*fn)(void *arg), void *arg,
               struct error *err)
{
    *task = (struct task){.loop = loop, .fn = fn, .arg = arg, .local = co_local(loop)};
    return co_spawn(loop, run, task, NULL, err);
}

void task_join(struct task *task)
{
    if (task->co == NULL)
        return;
    task->joiner = co_self(task->loop);
    /* Not to be cancelled: the task may be using this coroutine's stack. */
    while (task->co != NULL)
        co_park(task->joiner, -1, false);
    task->joiner = NULL;
}

void task_stop(struct task *task)
{
    if (task->co != NULL)
        co_cancel(task->co);
    task_join(task);
}
