/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Streams to programs of ours that run inside a sandbox and listen on a name of their own (an
 * abstract unix one: it needs no folder, and nobody outside the sandbox's network finds it). On
 * coroutines. What is at the other end is not trusted.
 *
 * A link that is open costs a descriptor and counts as no use of the sandbox, unless it is said to
 * be busy: a sandbox with links can idle, and stopping it ends them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "sandbox/sandbox.h"

/* Which run of which sandbox: what was in one start of it is not in the next. */
struct sandbox_identity {
    char id[SANDBOX_ID_LEN + 1];
    unsigned start;
    int64_t made_ms; /* what runs in it and is older was started ahead, by a pool */
    bool plain; /* … which it can use: it gives its processes nothing that those do not have */
};

/* Of one that runs; waits for one that is being made. SANDBOX_NOT_FOUND, NOT_RUNNING. */
int sandbox_identify(struct sandboxes *s, const char *workspace, const char *name,
                     struct sandbox_identity *ret_identity, struct error *err);

struct sandbox_link;

/* PORT_NOT_LISTENING when nobody listens there. The descriptor is non-blocking. */
int sandbox_link_open(struct sandboxes *s, const char *workspace, const char *name, const char *to,
                      int64_t timeout_ms, struct sandbox_link **ret_link, struct error *err);
int sandbox_link_fd(const struct sandbox_link *link);
/* Somebody is at work on it from now on, or is not any more. */
void sandbox_link_begin(struct sandbox_link *link);
void sandbox_link_end(struct sandbox_link *link);
void sandbox_link_close(struct sandbox_link *link); /* NULL is fine */

/* Sends a signal (see struct agent_signal) to a process and what it waits for. */
int sandbox_process_signal(struct sandboxes *s, const char *workspace, const char *name,
                           const char *process, int signal, struct error *err);
