/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A file descriptor that the agent's loop looks at.
 *
 * A watch lives inside the thing it belongs to (container_of() leads back) and owns its fd while
 * it is started. The loop may still hold an event for a watch that was stopped in the same turn:
 * such a watch has fd -1 and is passed over, so its owner must stay in memory until the end
 * of the turn (agent.c frees things only there).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct agent;
struct watch;

typedef void watch_ready(struct agent *agent, struct watch *watch, uint32_t events);

struct watch {
    int fd;          /* -1: not started */
    uint32_t events; /* EPOLL… */
    bool paused;     /* the loop does not look at it for a while */
    watch_ready *ready;
};

/* Takes the fd over when it succeeds. */
int watch_start(struct agent *agent, struct watch *watch, int fd, uint32_t events,
                watch_ready *ready, struct error *err);
void watch_change(struct agent *agent, struct watch *watch, uint32_t events);

/* Takes it out of the loop, and back. (With no events at all, ends and errors would still come.) */
void watch_pause(struct agent *agent, struct watch *watch);
void watch_resume(struct agent *agent, struct watch *watch);

/* Closes the fd; does nothing on a watch that is not started. */
void watch_stop(struct agent *agent, struct watch *watch);
