/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Coroutines.
 *
 * Everything a coroutine needs lies at the top of its own stack, so that starting one from the
 * pool allocates nothing. There is one way to wait, co_park(), and one way to be woken,
 * co_unpark(), which only puts the coroutine in the loop's queue: nobody is ever resumed from
 * deep inside somebody else's function, except by co_spawn(), which says so.
 */

#include "loop/co.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "loop/context.h"
#include "loop/fiber.h"
#include "loop/state.h"

enum { GUARD_SIZE = 64 * 1024 }; /* more than one page: large frames must not step over it */

/* A place in the queue of a co_cond. */
struct co_waiter {
    struct co *co;
    struct co_cond *cond; /* NULL when it stands in none */
    struct co_waiter *prev;
    struct co_waiter *next;
};

struct co {
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
    struct context here;  /* where it goes on */
    struct context *back; /* where its resumer goes on */
    struct co *next;      /* in the ready queue, or in the pool */
    struct timer timeout;
    struct co_waiter waiter; /* it waits at one place at a time */
    enum wake why;
    bool waiting;
    bool cancellable;
    bool cancelled;
    bool ended;
    void *local;
    void *fake_stack; /* AddressSanitizer's */
    const void *back_bottom;
    size_t back_size;
    struct errand errand; /* last: only a part of it is ever written */
};

/* --- stacks: [guard][stack … struct co] --- */

static char *stack_bottom(struct co *co)
{
    return (char *)co + sizeof(struct co) - CO_STACK_SIZE;
}

static size_t stack_size(void)
{
    return (CO_STACK_SIZE - sizeof(struct co)) & ~(size_t)63;
}

static struct co *stack_map(struct error *err)
{
    char *base = mmap(NULL, GUARD_SIZE + CO_STACK_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base == MAP_FAILED) {
        error_sys(err, "a coroutine's stack");
        return NULL;
    }
    if (mprotect(base, GUARD_SIZE, PROT_NONE) != 0) {
        error_sys(err, "a coroutine's guard page");
        munmap(base, GUARD_SIZE + CO_STACK_SIZE);
        return NULL;
    }
    return (struct co *)(base + GUARD_SIZE + CO_STACK_SIZE - sizeof(struct co));
}

static void stack_unmap(struct co *co)
{
    munmap(stack_bottom(co) - GUARD_SIZE, GUARD_SIZE + CO_STACK_SIZE);
}

static struct co *stack_take(struct loop *loop, struct error *err)
{
    struct co *co = loop->idle_stacks;
    if (co == NULL)
        return stack_map(err);
    loop->idle_stacks = co->next;
    loop->idle_stack_count--;
    fiber_clean(stack_bottom(co), stack_size());
    return co;
}

static void stack_give(struct co *co)
{
    struct loop *loop = co->loop;
    if (loop->idle_stack_count == LOOP_IDLE_STACKS) {
        stack_unmap(co);
        return;
    }
    co->next = loop->idle_stacks;
    loop->idle_stacks = co;
    loop->idle_stack_count++;
}

void co_free_stacks(struct loop *loop)
{
    while (loop->idle_stacks != NULL) {
        struct co *co = loop->idle_stacks;
        loop->idle_stacks = co->next;
        stack_unmap(co);
    }
    loop->idle_stack_count = 0;
}

/* --- switching --- */

static void resume(struct co *co)
{
    struct loop *loop = co->loop;
    struct co *was = loop->current;
    struct context back;
    void *fake_stack = NULL;

    co->back = &back;
    loop->current = co;
    log_set_errand(&co->errand);
    fiber_leave(&fake_stack, stack_bottom(co), stack_size());
    context_switch(&back, &co->here);
    fiber_arrive(fake_stack, NULL, NULL);
    loop->current = was;
    log_set_errand(was != NULL ? &was->errand : NULL);
    if (co->ended)
        stack_give(co);
}

static void suspend(struct co *co)
{
    fiber_leave(&co->fake_stack, co->back_bottom, co->back_size);
    context_switch(&co->here, co->back);
    fiber_arrive(co->fake_stack, &co->back_bottom, &co->back_size);
}

static void entry(void *arg)
{
    struct co *co = arg;
    fiber_arrive(NULL, &co->back_bottom, &co->back_size);
    co->fn(co->arg);
    co->ended = true;
    fiber_leave(NULL, co->back_bottom, co->back_size);
    context_switch(&co->here, co->back); /* and never comes back */
}

int co_spawn(struct loop *loop, void (*fn)(void *arg), void *arg, struct co **ret_co,
             struct error *err)
{
    struct co *co = stack_take(loop, err);
    if (co == NULL)
        return -1;
    size_t head = offsetof(struct co, errand);
    memset(co, 0, head + offsetof(struct errand, tracestate) + 1);
    co->loop = loop;
    co->fn = fn;
    co->arg = arg;
    if (loop->current != NULL) {
        const struct errand *from = &loop->current->errand;
        memcpy(&co->errand, from, offsetof(struct errand, tracestate) + from->tracestate_len + 1);
    }
    context_make(&co->here, stack_bottom(co), stack_size(), entry, co);
    if (ret_co != NULL)
        *ret_co = co;
    resume(co);
    return 0;
}

struct co *co_self(const struct loop *loop)
{
    return loop->current;
}

struct errand *co_errand(const struct loop *loop)
{
    return loop->current != NULL ? &loop->current->errand : NULL;
}

void co_set_local(const struct loop *loop, void *local)
{
    if (loop->current != NULL)
        loop->current->local = local;
}

void *co_local(const struct loop *loop)
{
    return loop->current == NULL ? NULL : loop->current->local;
}

/* --- waiting --- */

static void timed_out(struct timer *timer)
{
    co_unpark(container_of(timer, struct co, timeout), WAKE_TIMEOUT);
}

enum wake co_park(struct co *co, int64_t timeout_ms, bool cancellable)
{
    if (cancellable && co->cancelled)
        return WAKE_CANCEL;
    co->waiting = true;
    co->cancellable = cancellable;
    if (timeout_ms >= 0)
        timer_start(co->loop, &co->timeout, timeout_ms, timed_out);
    suspend(co);
    timer_stop(&co->timeout);
    return co->why;
}

void co_unpark(struct co *co, enum wake why)
{
    struct loop *loop = co->loop;
    if (!co->waiting)
        return;
    co->waiting = false;
    co->why = why;
    co->next = NULL;
    if (loop->ready_first == NULL)
        loop->ready_first = co;
    else
        loop->ready_last->next = co;
    loop->ready_last = co;
}

void co_run_ready(struct loop *loop)
{
    struct co *co = loop->ready_first;
    loop->ready_first = loop->ready_last = NULL;
    while (co != NULL) {
        struct co *next = co->next; /* its memory may be gone once it ran */
        resume(co);
        co = next;
    }
}

void co_cancel(struct co *co)
{
    co->cancelled = true;
    if (co->cancellable)
        co_unpark(co, WAKE_CANCEL);
}

int co_wake_error(enum wake why, int64_t timeout_ms, struct error *err)
{
    switch (why) {
    case WAKE_EVENT:
        return 0;
    case WAKE_TIMEOUT:
        return error_set(err, ERROR_TIMEOUT, "nothing happened for %lld ms", (long long)timeout_ms);
    case WAKE_CANCEL:
        break;
    }
    return error_set(err, ERROR_CANCELLED, "cancelled");
}

static int off_coroutine(struct error *err)
{
    return error_set(err, ERROR_INTERNAL, "a call that waits was made outside a coroutine");
}

struct fd_wait {
    struct watch watch;
    struct co *co;
};

static void fd_ready(struct watch *watch, uint32_t events)
{
    co_unpark(container_of(watch, struct fd_wait, watch)->co, WAKE_EVENT);
}

int co_wait_fd(struct loop *loop, int fd, uint32_t events, int64_t timeout_ms, struct error *err)
{
    struct co *co = co_self(loop);
    if (co == NULL)
        return off_coroutine(err);
    struct fd_wait wait = {.co = co};
    struct error why_not;
    _cleanup_fd_ int twin = -1;
    if (watch_start(loop, &wait.watch, fd, events, fd_ready, &why_not) != 0) {
        if (why_not.sys != EEXIST)
            return error_set(err, why_not.code, "%s", why_not.message);
        /* Somebody watches it already, as when one coroutine reads and another one writes.
         * epoll tells registrations apart by descriptor number, so a copy gets its own. */
        twin = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (twin < 0)
            return error_sys(err, "watching a descriptor");
        if (watch_start(loop, &wait.watch, twin, events, fd_ready, err) != 0)
            return -1;
    }
    enum wake why = co_park(co, timeout_ms, true);
    watch_stop(&wait.watch);
    return co_wake_error(why, timeout_ms, err);
}

int co_sleep(struct loop *loop, int64_t ms, struct error *err)
{
    struct co *co = co_self(loop);
    if (co == NULL)
        return off_coroutine(err);
    enum wake why = co_park(co, ms < 0 ? 0 : ms, true);
    return why == WAKE_TIMEOUT ? 0 : co_wake_error(why, ms, err);
}

/* --- conditions --- */

static void waiter_remove(struct co_waiter *waiter)
{
    struct co_cond *cond = waiter->cond;
    if (cond == NULL)
        return;
    *(waiter->prev != NULL ? &waiter->prev->next : &cond->first) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &cond->last) = waiter->prev;
    waiter->cond = NULL;
}

int co_cond_wait(struct loop *loop, struct co_cond *cond, int64_t timeout_ms, struct error *err)
{
    struct co *co = co_self(loop);
    if (co == NULL)
        return off_coroutine(err);
    co->waiter = (struct co_waiter){.co = co, .cond = cond, .prev = cond->last};
    *(cond->last != NULL ? &cond->last->next : &cond->first) = &co->waiter;
    cond->last = &co->waiter;
    enum wake why = co_park(co, timeout_ms, true);
    waiter_remove(&co->waiter);
    return co_wake_error(why, timeout_ms, err);
}

void co_cond_wake(struct co_cond *cond)
{
    while (cond->first != NULL) {
        struct co_waiter *waiter = cond->first;
        bool waiting = waiter->co->waiting; /* else its time ran out before it could leave */
        waiter_remove(waiter);
        co_unpark(waiter->co, WAKE_EVENT);
        if (waiting)
            return;
    }
}

void co_cond_wake_all(struct co_cond *cond)
{
    while (cond->first != NULL)
        co_cond_wake(cond);
}
