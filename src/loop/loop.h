/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The event loop: descriptors, timers, and things to do at the next turn. One thread owns it and
 * everything that hangs on it; other threads reach it only through loop/work.h.
 *
 * Watches and timers are embedded in their owner's struct and found back with container_of();
 * the loop never frees them. A callback may stop, restart or free any watch or timer, its own too.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct loop;
struct meters;

struct loop *loop_new(struct error *err);
void loop_free(struct loop *loop); /* NULL is fine. All watches and timers must be stopped */

/* Runs until loop_stop(). */
int loop_run(struct loop *loop, struct error *err);
void loop_stop(struct loop *loop);

/* What everything on this loop is counted with (observe/meters.h); borrowed. NULL: not at all. */
void loop_set_meters(struct loop *loop, struct meters *meters);
struct meters *loop_meters(const struct loop *loop);

/* Monotonic time in ms, taken once per turn. */
int64_t loop_now(const struct loop *loop);

struct watch {
    struct loop *loop; /* NULL while stopped; start from a zeroed struct */
    int fd;
    uint32_t events; /* EPOLLIN, EPOLLOUT, … */
    void (*ready)(struct watch *watch, uint32_t events);
};

/* Watches fd (borrowed; level-triggered). EPOLLERR and EPOLLHUP always come. */
int watch_start(struct loop *loop, struct watch *watch, int fd, uint32_t events,
                void (*ready)(struct watch *, uint32_t), struct error *err);
int watch_change(struct watch *watch, uint32_t events, struct error *err);
void watch_stop(struct watch *watch); /* before the fd is closed. Fine when not started */

struct timer {
    struct loop *loop; /* NULL while stopped; start from a zeroed struct */
    int64_t at;
    uint64_t order; /* of starting: equal times fire in this order */
    unsigned heap_index;
    void (*fire)(struct timer *timer);
};

/* One-shot; starting a running timer moves it. Cannot fail: out of memory aborts. */
void timer_start(struct loop *loop, struct timer *timer, int64_t delay_ms,
                 void (*fire)(struct timer *));
void timer_stop(struct timer *timer);
