/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Streams to TCP ports inside a sandbox: to its own loopback and nowhere else. On coroutines; waits
 * for a sandbox that is being made, as in processes.h; starts one that is stopped where it is to be
 * woken (sandbox/lifespan.h), and the command that serves the port (sandbox/publish.h) when nothing
 * listens there.
 *
 * A tunnel is a plain connected socket (non-blocking), and ends when its peer inside does: stopping
 * a sandbox ends all of them. There are at most TUNNELS_MAX per sandbox.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/sandbox.h"

struct tunnel;

/* may_reuse: one that tunnel_keep() put aside for this port will do (its peer may close it at any
 * moment). err is not NULL. PORT_NOT_LISTENING, SANDBOX_NOT_FOUND, NOT_RUNNING, LIMIT_EXCEEDED,
 * TIMEOUT; when it has to be woken those of sandboxes_start(). */
int sandbox_tunnel(struct sandboxes *s, const char *workspace, const char *name, uint16_t port,
                   bool may_reuse, struct tunnel **ret_tunnel, struct error *err);

int tunnel_fd(const struct tunnel *t);

/* Waiting for its bytes (a net_wait; t is the struct tunnel): on a watch that it keeps, which saves
 * two system calls per request. One coroutine at a time waits for EPOLLIN; other events go the
 * ordinary way. Who is going to wait for the descriptor by himself calls tunnel_unwatch() first. */
int tunnel_wait(void *t, int fd, uint32_t events, int64_t timeout_ms, struct error *err);
void tunnel_unwatch(struct tunnel *t);

bool tunnel_was_used(const struct tunnel *t); /* it comes from tunnel_keep() */

/* Puts it aside for the next one, for a moment, or closes it. Nothing may be under way on it. */
void tunnel_keep(struct tunnel *t);
void tunnel_close(struct tunnel *t); /* NULL is fine */

static inline void cleanup_tunnel(struct tunnel **t)
{
    tunnel_close(*t);
}
