/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the handlers of /v0/sandboxes share. */

#include "api/call.h"

/* Waits while it is being made or started, then answers with it; UNAVAILABLE with the reason when
 * it did not come up. */
int blaxel_reply_ready(struct http_exchange *x, const struct api_call *call, const char *name,
                       struct error *err);
