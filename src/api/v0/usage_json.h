/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a sandbox uses, is allowed to use, and was asked: the same in every list that shows it. */

#include <yyjson.h>

#include "sandbox/metrics.h"

/* Adds the members to `item`. Strings are borrowed until the document is written. A figure that is
 * not known is left out. */
void usage_json(yyjson_mut_doc *doc, yyjson_mut_val *item, const struct sandbox_usage *usage);
