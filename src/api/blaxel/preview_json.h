/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Previews and their tokens as Blaxel's clients send and see them. */

#include "api/call.h"
#include "sandbox/previews.h"

/*
 * Reads {"metadata":{"name"},"spec":{"port","public","expires","ttl","requestHeaders",
 * "responseHeaders",…}}; what else is in the spec is kept. Fills all but actor and replace. name
 * is NULL when none was sent. INVALID_ARGUMENT names the member.
 */
int preview_request_from_json(struct arena *arena, yyjson_val *body,
                              struct preview_request *ret_request, struct error *err);

/* Where it is reached, without a slash at its end. */
const char *preview_url(struct http_exchange *x, const struct api *api,
                        const struct preview_info *info);

/* Strings are borrowed from the info until the document is written. */
yyjson_mut_val *preview_json(struct arena *arena, yyjson_mut_doc *doc,
                             const struct preview_info *info, const char *url, const char *status);
yyjson_mut_val *preview_token_json(yyjson_mut_doc *doc, const struct preview_token_info *token,
                                   const char *sandbox, const char *preview);
