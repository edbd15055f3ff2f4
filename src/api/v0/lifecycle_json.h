/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * spec.lifecycle: {"ttl": "30m", "idleTimeout": 600, "maxAge": "7d", "expires":
 * "2030-01-01T00:00:00Z", "onExpire": "stop"}. Spans are text ("1h30m") or seconds.
 */

#include "json/json.h"
#include "sandbox/lifespan.h"

/* Sets everything, with what is not there as none. object may be NULL: nothing is set.
 * UNKNOWN_FIELD, INVALID_ARGUMENT, INVALID_DURATION. */
int lifecycle_from_json(struct arena *arena, yyjson_val *object, struct lifespan_change *ret_change,
                        struct error *err);

/* For a change (JSON Merge Patch): sets what is there; null is none, and so is null for the whole.
 */
int lifecycle_patch_from_json(struct arena *arena, yyjson_val *object,
                              struct lifespan_change *ret_change, struct error *err);

/* The member "lifecycle" of a spec, when there is anything to say. */
void lifecycle_to_json(yyjson_mut_doc *doc, yyjson_mut_val *spec, const struct lifespan *span);
