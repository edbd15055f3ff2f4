/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What E2B's clients ask for when they make a sandbox. */

#include "api/e2b/spec.h"

enum { E2B_TIMEOUT_DEFAULT_S = 300 };

struct e2b_create_request {
    struct e2b_spec spec;
    struct slice env;
    struct lifespan lifespan;
    struct network_request network;
};

/* Members that mean nothing here (mcp) are passed over, as E2B's own clients send more with
 * every version. INVALID_ARGUMENT names the member that cannot be had. */
int e2b_create_from_json(struct arena *arena, yyjson_val *body, struct e2b_create_request *ret,
                         struct error *err);

/* "metadata": an object of strings. INVALID_ARGUMENT. */
int e2b_metadata_from_json(yyjson_val *body, struct e2b_spec *spec, struct error *err);

/* "timeout" in seconds, at least one. *ret stays as it is without. */
int e2b_timeout_from_json(yyjson_val *body, int64_t *ret_seconds, struct error *err);
