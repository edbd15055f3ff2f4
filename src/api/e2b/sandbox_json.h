/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sandboxes in E2B's words. */

#include "api/call.h"
#include "sandbox/sandbox.h"

/* Lower ones switch features of the clients off. */
#define E2B_ENVD_VERSION "0.6.13"

/* What a client needs to use it: create, connect, fork. With the sandbox's token in it. */
yyjson_mut_val *e2b_handle_json(struct http_exchange *x, yyjson_mut_doc *doc,
                                const struct api_call *call, const struct sandbox_info *info);
/* All that is known of it. tokens: with the sandbox's, as for one; not in lists. */
yyjson_mut_val *e2b_detail_json(struct http_exchange *x, yyjson_mut_doc *doc,
                                const struct api_call *call, const struct sandbox_info *info,
                                bool tokens);

/* Unix times in ms: of its last start, and of its end. The clients want a date; one that does not
 * end, or is paused, has none: a year is far enough. */
int64_t e2b_started(const struct sandbox_info *info);
int64_t e2b_end(const struct sandbox_info *info);

/* "running" or "paused". */
const char *e2b_state(const struct sandbox_info *info);
bool e2b_is_paused(const struct sandbox_info *info);

/* A sandbox of the caller's, by its id or name, that is no snapshot; SANDBOX_NOT_FOUND in E2B's
 * words. */
int e2b_sandbox_find(struct http_exchange *x, const struct api_call *call, const char *id,
                     struct sandbox_info *ret_info, struct error *err);
/* Waits until it runs, then answers with its handle. */
int e2b_reply_handle(struct http_exchange *x, const struct api_call *call, int status,
                     const char *id, struct error *err);
/* Waits until it runs; UNAVAILABLE says why it does not. */
int e2b_settle(struct http_exchange *x, const struct api_call *call, const char *id,
               struct sandbox_info *ret_info, struct error *err);
int e2b_reply_nothing(struct http_exchange *x, struct error *err); /* 204 */
