/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Readers of a process's output as it comes: AGENT_FOLLOW, and AGENT_EXEC with EXEC_FOLLOW. A
 * follower belongs to a connection, which carries nothing else, and goes with it.
 *
 * What a follower has not read yet is in the process's log and nowhere else, so a slow one costs no
 * memory: it misses what is dropped, and is told how much. One that holds (FOLLOW_HOLD) misses
 * nothing: the process's pipes are left alone until it has caught up, and the process waits, as it
 * would for the slow reader of a pipe.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct agent;
struct connection;
struct process;

struct follower {
    struct follower *next; /* of the same process */
    struct process *process;
    struct connection *connection;
    uint32_t id;
    bool hold;
    uint64_t offset; /* in both streams together: up to here it was sent */
    uint64_t until;  /* the end, when it does not follow; UINT64_MAX */
};

/* LIMIT_EXCEEDED; CONFLICT when the connection follows something already. */
int follow(struct agent *agent, struct process *process, struct connection *connection, uint32_t id,
           uint64_t offset, uint64_t flags, struct error *err);

/* Sends what there is, as far as the readers take it. */
void followers_go_on(struct agent *agent, struct process *process);
/* The same for one, whose connection has room again. It may be gone afterwards. */
void follower_go_on(struct agent *agent, struct follower *follower);

/* Whether the process has to wait for a reader. */
bool followers_hold(const struct process *process);

/* Without a word: the connection has gone, or the process. */
void follower_free(struct agent *agent, struct follower *follower);
