/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/api.h"

/* Answers with one whole sandbox, the addresses it is reached at included, and its revision as
 * ETag.
 */
int sandbox_reply(struct http_exchange *x, int status, const struct api *api,
                  const struct sandbox_info *info, struct error *err);

/* The revision that If-Match asks for; 0: any. INVALID_ARGUMENT when it is no revision of ours. */
int sandbox_if_match(struct http_exchange *x, uint64_t *ret_revision, struct error *err);
/* "rev-123"; false when the text is something else. */
bool sandbox_parse_revision(const char *text, uint64_t *ret_revision);
/* REVISION_MISMATCH unless If-Match is absent, or right. Nothing waits in here. */
int sandbox_check_if_match(struct http_exchange *x, const struct api *api, const char *workspace,
                           const char *name, struct error *err);
