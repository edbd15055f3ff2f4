/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The output of a process: from its pipes into what is kept of it. */

#include <stdbool.h>
#include <stdint.h>

#include "agent/output.h"
#include "agent/watch.h"

struct process;

struct stream {
    struct watch watch; /* not started: the end was reached */
    struct output output;
    unsigned number; /* 0: stdout, 1: stderr */
};

bool streams_open(const struct process *process);

/* Both streams together: bytes ever written. */
uint64_t streams_total(const struct process *process);

/* Whether more was written than it may write, read or not. */
bool streams_past_limit(const struct process *process);

/* Appends what the agent itself has to say to a stream. */
void stream_add(struct agent *agent, struct process *process, unsigned number, const char *text);

/*
 * At the end of a process: takes what its leader has written. That is no more than what is in
 * the pipes now, so a background process that goes on writing cannot keep us here. The end of a
 * stream is an event of its own, which can wait until the answer is out. Nothing is taken while a
 * reader holds the process back (follow.h).
 */
void streams_drain(struct agent *agent, struct process *process);

/* Takes what the process has written and the loop has not told of yet, the ends of its streams too.
 */
void streams_catch_up(struct agent *agent, struct process *process);

/* Stops looking at the pipes, and begins again: while they are not read the process has to wait. */
void streams_pause(struct agent *agent, struct process *process);
void streams_resume(struct agent *agent, struct process *process);

/* Larger pipes, for who writes much and is followed: less often has one to wait for the other. */
void streams_widen(struct process *process);

/* Closes the pipes; what came out of them stays. */
void streams_close(struct agent *agent, struct process *process);

watch_ready stream_ready;
