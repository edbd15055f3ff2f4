/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* spec.history: {"enabled": true, "maxFileSize": "10Mi", "ignore": ["@default", "dist"]}. */

#include <yyjson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* What it says, as the domain's list (sandbox/history_rules.h), which says what is wrong with the
 * values. NULL is an empty list. */
int history_rules_from_json(struct arena *arena, yyjson_val *value, struct slice *ret_list,
                            struct error *err);
/* Adds "history" to a spec: all of it, what was said and what was not. */
void history_rules_to_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *spec,
                           struct slice list);
