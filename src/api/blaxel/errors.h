/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Errors as Blaxel's clients read them. The control plane's have a number for a code, those of a
 * sandbox are a sentence alone. */

#include "http/server.h"

/* {"code":404,"error":"SANDBOX_NOT_FOUND","message":"…"} */
int blaxel_reply_error(struct http_exchange *x, const struct error *why, struct error *err);

/* {"error":"…"}, with 422 for what cannot be done with the file or process that there is. */
int blaxel_box_reply_error(struct http_exchange *x, const struct error *why, struct error *err);
