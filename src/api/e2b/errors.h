/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Errors as E2B's clients turn them into their exceptions. */

#include "base/error.h"
#include "http/server.h"

/* The control plane's: {"code": <status>, "message"}. */
int e2b_reply_error(struct http_exchange *x, const struct error *why, struct error *err);
/* Inside a sandbox: Connect's for its services, plain text for the code interpreter, else as above;
 * a sandbox that is gone or does not run is 502. */
int e2b_envd_reply_error(struct http_exchange *x, const struct error *why, struct error *err);

/* The status that goes with an error there. */
int e2b_status(enum error_code code);
