/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sandboxes in Scalebox's words, and its envelope around every answer. */

#include "api/call.h"
#include "sandbox/sandbox.h"

/* A moment, as the clients read it. */
void scalebox_add_time(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, int64_t ms);

/* token: with the sandbox's, which opens it; not in lists. */
yyjson_mut_val *scalebox_sandbox_json(struct http_exchange *x, yyjson_mut_doc *doc,
                                      const struct api_call *call, const struct sandbox_info *info,
                                      bool token);

/* "running", "paused" … */
const char *scalebox_status(enum sandbox_status status);

/* {"success": true, "data": …}: *ret_doc, whose "data" the caller fills. */
yyjson_mut_val *scalebox_envelope(struct arena *arena, yyjson_mut_doc **ret_doc);

int scalebox_reply_sandbox(struct http_exchange *x, const struct api_call *call, int status,
                           const struct sandbox_info *info, struct error *err);
