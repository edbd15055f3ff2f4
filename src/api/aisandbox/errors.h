/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Errors of /api/sandbox: {"error": {"code", "message", "details": {"category", "cause"}}}. The
 * codes are those of all our APIs (docs/errors.md). A call that fails for a reason further down
 * says in its message what failed, and in details.cause why.
 */

#include <yyjson.h>

#include "base/error.h"
#include "http/server.h"

int aisandbox_reply_error(struct http_exchange *x, const struct error *why, struct error *err);

/* Adds the member "error" to an object; returns its details, for who has more to say. */
yyjson_mut_val *aisandbox_add_error(yyjson_mut_doc *doc, yyjson_mut_val *object,
                                    enum error_code code, const char *message);
