/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A run that is under way, and reading it to its end. Of a context that is locked. */

#include "code/state.h"
#include "sandbox/history.h"

struct running {
    struct context *c;
    const struct code_place *place;
    uint32_t number;
    bool begun;  /* its own events have begun to come */
    bool follow; /* whatever run it is */
    bool deaf;   /* nobody listens */
    bool left;   /* … any more: the listener has said so */
    bool failed; /* it was told that it has */
    uint64_t count;
    unsigned status;
    int64_t timeout_ms, deadline; /* of the run; 0: none */
    int64_t kill_at;              /* it was interrupted; 0: it was not */
    int64_t again_at;
    int64_t paused_ms; /* how long the sandbox had stood still when these were right */
    int64_t idle_ms;
    uint64_t burst; /* net_turn()'s */
    code_listener *listener;
    void *ctx;
    struct arena *arena; /* of one event */
    char execution[EXECUTION_ID_SIZE];
};

/* Reads to the run's end, and tells its events. -1: the listener's error, or the caller was
 * cancelled. */
int running_attend(struct running *r, struct error *err);
/* Interrupts it, and again until its interpreter is killed. */
void running_interrupt(struct running *r);
/* It was interrupted because its time was over. */
bool running_timed_out(const struct running *r);
