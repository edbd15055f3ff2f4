/* SPDX-License-Identifier: Apache-2.0 */

/*
 * epoll, and a heap of timers.
 *
 * The kernel hands out events in batches, and the callback of one event may stop or free the
 * watch of a later one in the same batch. So the batch lives in the loop, and stopping a watch
 * takes its events out of it: a stale pointer is never followed.
 */

#include "loop/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop/state.h"
#include "observe/meters.h"

enum { NS_PER_MS = 1000000 };

static int64_t clock_ms(void)
{
    return (int64_t)(meter_now() / NS_PER_MS);
}

struct loop *loop_new(struct error *err)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    if (loop == NULL) {
        error_sys(err, "making an event loop");
        return NULL;
    }
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0) {
        error_sys(err, "epoll_create1");
        free(loop);
        return NULL;
    }
    loop->now = clock_ms();
    return loop;
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    co_free_stacks(loop);
    for (unsigned i = 0; i < loop->pipe_count; i++) {
        close(loop->pipes[i].read_fd);
        close(loop->pipes[i].write_fd);
    }
    close(loop->epoll_fd);
    free(loop->heap);
    free(loop);
}

void loop_set_meters(struct loop *loop, struct meters *meters)
{
    loop->meters = meters;
}

struct meters *loop_meters(const struct loop *loop)
{
    return loop->meters;
}

void loop_stop(struct loop *loop)
{
    loop->stopping = true;
}

int64_t loop_now(const struct loop *loop)
{
    return loop->now;
}

/* --- descriptors --- */

static int control(struct watch *watch, int op, struct error *err)
{
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};
    if (epoll_ctl(watch->loop->epoll_fd, op, watch->fd, &event) != 0)
        return error_sys(err, "watching a descriptor");
    return 0;
}

int watch_start(struct loop *loop, struct watch *watch, int fd, uint32_t events,
                void (*ready)(struct watch *, uint32_t), struct error *err)
{
    watch_stop(watch);
    *watch = (struct watch){.loop = loop, .fd = fd, .events = events, .ready = ready};
    if (control(watch, EPOLL_CTL_ADD, err) != 0) {
        watch->loop = NULL;
        return -1;
    }
    return 0;
}

int watch_change(struct watch *watch, uint32_t events, struct error *err)
{
    if (watch->loop == NULL)
        return error_set(err, ERROR_INTERNAL, "a watch was changed that is not started");
    if (watch->events == events)
        return 0;
    uint32_t before = watch->events;
    watch->events = events;
    if (control(watch, EPOLL_CTL_MOD, err) != 0) {
        watch->events = before;
        return -1;
    }
    return 0;
}

void watch_stop(struct watch *watch)
{
    struct loop *loop = watch->loop;
    if (loop == NULL)
        return;
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    for (int i = loop->batch_next; i < loop->batch_len; i++)
        if (loop->batch[i].data.ptr == watch)
            loop->batch[i].data.ptr = NULL;
    watch->loop = NULL;
}

static void dispatch(struct loop *loop)
{
    for (loop->batch_next = 0; loop->batch_next < loop->batch_len;) {
        struct epoll_event *event = &loop->batch[loop->batch_next++];
        struct watch *watch = event->data.ptr;
        if (watch == NULL)
            continue;
        /* What an earlier callback of this batch no longer asks for is not told either. */
        uint32_t events = event->events & (watch->events | EPOLLERR | EPOLLHUP);
        if (events != 0)
            watch->ready(watch, events);
    }
    loop->batch_len = loop->batch_next = 0;
}

/* --- timers: a binary heap; equal times fire in the order they were started --- */

static bool earlier(const struct timer *a, const struct timer *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct loop *loop, unsigned i, struct timer *timer)
{
    loop->heap[i] = timer;
    timer->heap_index = i;
}

static void sift_up(struct loop *loop, unsigned i, struct timer *timer)
{
    while (i > 0 && earlier(timer, loop->heap[(i - 1) / 2])) {
        put(loop, i, loop->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(loop, i, timer);
}

static void sift_down(struct loop *loop, unsigned i, struct timer *timer)
{
    for (;;) {
        unsigned child = 2 * i + 1;
        if (child >= loop->timers)
            break;
        if (child + 1 < loop->timers && earlier(loop->heap[child + 1], loop->heap[child]))
            child++;
        if (!earlier(loop->heap[child], timer))
            break;
        put(loop, i, loop->heap[child]);
        i = child;
    }
    put(loop, i, timer);
}

void timer_start(struct loop *loop, struct timer *timer, int64_t delay_ms,
                 void (*fire)(struct timer *))
{
    timer_stop(timer);
    if (loop->timers == loop->heap_cap) {
        loop->heap_cap = loop->heap_cap == 0 ? 64 : loop->heap_cap * 2;
        loop->heap = realloc(loop->heap, loop->heap_cap * sizeof(struct timer *));
        if (loop->heap == NULL)
            abort();
    }
    timer->loop = loop;
    timer->at = loop->now + (delay_ms < 0 ? 0 : delay_ms);
    timer->order = loop->timer_order++;
    timer->fire = fire;
    sift_up(loop, loop->timers++, timer);
}

void timer_stop(struct timer *timer)
{
    struct loop *loop = timer->loop;
    if (loop == NULL)
        return;
    unsigned hole = timer->heap_index;
    timer->loop = NULL;
    struct timer *last = loop->heap[--loop->timers];
    if (last == timer)
        return;
    if (hole > 0 && earlier(last, loop->heap[(hole - 1) / 2]))
        sift_up(loop, hole, last);
    else
        sift_down(loop, hole, last);
}

/* A timer started by one of these callbacks waits for the next turn even when it is due, so that
 * one that keeps restarting itself cannot keep the descriptors waiting. */
static void fire_timers(struct loop *loop)
{
    uint64_t end = loop->timer_order;
    while (loop->timers > 0) {
        struct timer *timer = loop->heap[0];
        if (timer->at > loop->now || timer->order >= end)
            break;
        timer_stop(timer);
        timer->fire(timer);
    }
}

static int wait_ms(struct loop *loop)
{
    uint64_t now = meter_now();
    if (loop->turn_ns != 0)
        meter_observe(loop->meters, METER_LOOP_LAG, (double)(now - loop->turn_ns) / 1e9);
    if (loop->ready_first != NULL || loop->stopping)
        return 0;
    if (loop->timers == 0)
        return -1;
    int64_t left = loop->heap[0]->at - (int64_t)(now / NS_PER_MS);
    if (left < 0)
        return 0;
    return left > INT_MAX ? INT_MAX : (int)left;
}

int loop_run(struct loop *loop, struct error *err)
{
    while (!loop->stopping) {
        int n = epoll_wait(loop->epoll_fd, loop->batch, LOOP_BATCH, wait_ms(loop));
        if (n < 0 && errno != EINTR)
            return error_sys(err, "epoll_wait");
        loop->turn_ns = meter_now();
        loop->now = (int64_t)(loop->turn_ns / NS_PER_MS);
        loop->batch_len = n < 0 ? 0 : n;
        dispatch(loop);
        fire_timers(loop);
        co_run_ready(loop);
    }
    loop->stopping = false; /* so that it can run again */
    return 0;
}
