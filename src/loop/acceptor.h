/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Serving the connections of a listening socket, each on a coroutine of its own, at most so many at
 * a time: the kernel's queue holds the others until one ends.
 */

#include "base/error.h"
#include "loop/loop.h"

struct acceptor;

/* On a coroutine. The descriptor is the acceptor's, which closes it afterwards. */
typedef void acceptor_serve(void *ctx, int fd);

/* Takes listen_fd over (non-blocking), on failure too. */
int acceptor_new(struct loop *loop, int listen_fd, unsigned max, acceptor_serve *serve, void *ctx,
                 struct acceptor **ret_acceptor, struct error *err);

/* On a coroutine. Stops listening before it waits for anything, cancels those that are being
 * served, and is done when the last of them has ended. */
void acceptor_end(struct acceptor *acceptor);
