/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Telling somebody of each port that a process begins to listen on.
 *
 * A monitor looks at the process's ports (its own and its children's, TCP) now and then, and has
 * each new one delivered: at least once, with retries that come further and further apart, and
 * given up after some. It is in the store, and so are the ports that still have to be told of, so a
 * restart of cellad changes nothing. It ends with the process, or when it is stopped. A process has
 * one at most.
 */

#include <stdint.h>

#include "base/error.h"
#include "sandbox/sandbox.h"

struct port_event {
    const char *callback;
    unsigned shape; /* as it was given to sandbox_monitor_start() */
    uint64_t pid;
    unsigned port;
};

/* How an event is delivered: on a coroutine; a failure is tried again. CALLBACK_REFUSED is not. */
typedef int port_delivery(void *ctx, const struct port_event *event, struct error *err);
void sandboxes_set_port_delivery(struct sandboxes *s, port_delivery *deliver, void *ctx);

/* Tells `callback` from now on, first of the ports that are there. Takes the place of an earlier
 * one. shape: the caller's, handed back with each event. LIMIT_EXCEEDED; NOT_RUNNING when the
 * process has ended. */
int sandbox_monitor_start(struct sandboxes *s, const char *workspace, const char *name,
                          const char *process, const char *callback, unsigned shape,
                          uint64_t *ret_pid, struct error *err);
/* MONITOR_NOT_FOUND when there is none. */
int sandbox_monitor_stop(struct sandboxes *s, const char *workspace, const char *name,
                         const char *process, uint64_t *ret_pid, struct error *err);
