/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How long a sandbox lives, as Blaxel's clients say it: runtime.ttl (from its making),
 * runtime.expires (a date), and lifecycle.expirationPolicies, a list of ttl-max-age, ttl-idle and
 * date. All of them delete, and the first one counts: so they come down to one date and one idle
 * time-out.
 */

#include "json/json.h"
#include "sandbox/lifespan.h"

/* spec: the whole of it, or NULL. INVALID_ARGUMENT and INVALID_DURATION name the member. */
int blaxel_lifespan(yyjson_val *spec, int64_t created_ms, struct lifespan *ret_span,
                    struct error *err);

/* The same for what is kept of a spec, as text; nothing for NULL and for what cannot be read. */
struct lifespan blaxel_kept_lifespan(struct arena *arena, const char *spec, int64_t created_ms);
