/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* spec.autoLower: {"factor": 1.5, "minimum": {"cpu": "100m", "memory": "64Mi", "disk": "1Gi"}}. */

#include <yyjson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* As the domain's list (sandbox/auto_lower.h), which says what is wrong with the values. false and
 * {} are an empty list: off. */
int auto_lower_from_json(struct arena *arena, yyjson_val *value, struct slice *ret_list,
                         struct error *err);
/* Adds "autoLower" to a spec, unless the list is empty. */
void auto_lower_to_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *spec,
                        struct slice list);
