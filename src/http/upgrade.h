/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Leaving HTTP: after a 101 the connection belongs to the handler until it returns, and speaks
 * whatever both sides agreed on. It is then closed: in an orderly way when the handler returns 0,
 * with a reset when it fails. When the server shuts down, the handler's coroutine is cancelled at
 * once.
 */

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "http/server.h"

/* Whether the client asks to go on in this protocol ("websocket", "tcp"). */
bool http_wants_upgrade(const struct http_exchange *x, const char *protocol);

/*
 * Answers 101, with the fields that http_set_header() collected. The descriptor is borrowed, and
 * nobody else waits on it; *ret_early are bytes that came behind the request, until the handler
 * returns. UPGRADE_REQUIRED when the client did not ask for it (a request with a body, or by
 * HTTP/1.0, cannot).
 */
int http_upgrade(struct http_exchange *x, const char *protocol, int *ret_fd,
                 struct slice *ret_early, struct error *err);
