/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Slots for work that takes much memory or time, shared fairly between workspaces: so many at a
 * time in all, so many of one workspace, and a bounded queue for each workspace. A slot that
 * becomes free goes to the workspace that was served longest ago; within a workspace the first to
 * come is the first to be served.
 */

#include <stddef.h>

#include "base/error.h"
#include "loop/co.h"

struct fair_slots {
    struct loop *loop;
    const char *what; /* for messages: "diffs" */
    unsigned most, most_each, queue_each;
    unsigned taken;
    unsigned turn; /* counts slots that were given */
    struct slot_user *users;
    struct slot_waiter *first, *last;
};

void fair_slots_init(struct fair_slots *slots, struct loop *loop, const char *what, unsigned most,
                     unsigned most_each, unsigned queue_each);
void fair_slots_release(struct fair_slots *slots); /* nobody may have or want a slot */

/* Waits for a slot, for timeout_ms at most (-1: for ever). LIMIT_EXCEEDED: too many of the
 * workspace wait already; TIMEOUT; CANCELLED. Each slot is given back once. */
int fair_slots_take(struct fair_slots *slots, const char *workspace, int64_t timeout_ms,
                    struct error *err);
void fair_slots_give(struct fair_slots *slots, const char *workspace);
/* Takes a slot even if none is free, for work that has waited long enough. */
void fair_slots_force(struct fair_slots *slots, const char *workspace);
