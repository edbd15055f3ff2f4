/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Amounts of resources as JSON numbers: cores with fractions, everything else whole. */

#include <yyjson.h>

#include "sandbox/metrics.h"
#include "sandbox/sandbox.h"

/* A limit or a sum, in the units of struct spec_limits. */
void amount_add(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                enum resource resource, double value);
/* How much of a limit is used, in per cent with one digit behind the point. A figure that is not
 * known is left out. */
void percent_add(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double used,
                 double limit);
/* "usage" of a sandbox: what it uses of each of its limits, and whether they are enforced here. */
void usage_add(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct sandbox_info *info,
               const struct sandboxes *sandboxes);
