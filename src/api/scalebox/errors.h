/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Errors as Scalebox's clients read them. */

#include "base/error.h"
#include "http/server.h"

/* The control plane's: {"success": false, "code": <status>, "error": NAME, "message"}. */
int scalebox_reply_error(struct http_exchange *x, const struct error *why, struct error *err);
/* Inside a sandbox: Connect's for its services, else as above. */
int scalebox_box_reply_error(struct http_exchange *x, const struct error *why, struct error *err);
