/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shapes of histories, which every API of ours that has one gives the same. Paths and texts of
 * diffs are a sandbox's bytes: what is not UTF-8 in them is U+FFFD here. */

#include "api/call.h"
#include "sandbox/history.h"

/* "history": [{id, commitId, timestamp, message, files}], and "more" when there are older ones. */
void history_page_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                       const struct history_page *page);
/* A question that failed: says when to try again where too many wait for their turn. Returns -1. */
int history_refused(struct http_exchange *x, const struct error *why);
/* "diff": {path: text}, and "truncated" when something was too much. */
void history_diff_json(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct history_diff *diff);
/* id, executionId, commitId, "savedAs" when something was committed first, "files". */
void history_rollback_json(yyjson_mut_doc *doc, yyjson_mut_val *root,
                           const struct history_rollback *done);
