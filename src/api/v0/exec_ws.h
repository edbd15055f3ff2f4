/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Commands over a WebSocket, for every facade that has an address for it. */

#include "api/call.h"

/* Answers with 101 and serves the connection to its end. sandbox: its name or id. user: as whom its
 * commands run; NULL: root. */
int exec_ws_serve(struct http_exchange *x, const struct api_call *call, const char *sandbox,
                  const char *user, struct error *err);
