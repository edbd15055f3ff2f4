/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A descriptor for a TLS connection that has left HTTP. What follows an upgrade (WebSocket, a
 * tunnel) owns a socket: it waits for it, splices it, hands it on. So it is given one end of a
 * pair, and two tasks carry bytes between the other end and TLS.
 *
 * The end of each direction is passed on: a goodbye of TLS is a closed half on the descriptor, and
 * the other way round.
 */

#include <stdint.h>

#include "base/error.h"
#include "http/tls.h"
#include "loop/loop.h"

struct tls_bridge;

/* fd is the socket below tls; both stay the caller's, and nobody else uses them from now on.
 * *ret_fd is the caller's to close. On a coroutine. */
int tls_bridge_new(struct loop *loop, struct tls *tls, int fd, int *ret_fd,
                   struct tls_bridge **ret_bridge, struct error *err);
/* Waits until all that was written to the descriptor (which was closed or shut down) has gone out,
 * and the goodbye, or the other side has stopped taking it. */
void tls_bridge_drain(struct tls_bridge *bridge);
/* Ends both directions wherever they are. NULL is fine. */
void tls_bridge_free(struct tls_bridge *bridge);
