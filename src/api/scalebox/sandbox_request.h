/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What Scalebox's clients ask for when they make a sandbox. */

#include "api/e2b/spec.h"

enum { SCALEBOX_TIMEOUT_DEFAULT_S = 300 };

struct scalebox_create_request {
    struct e2b_spec spec;
    const char *name; /* for people; NULL: none */
    struct slice env;
    struct sandbox_resources resources;
    struct lifespan lifespan;
    struct network_request network;
    bool is_async; /* is answered before it runs */
};

/* "cpu_count", "memory_mb" and "storage_gb"; what is not given stays NULL. */
int scalebox_resources_from_json(struct arena *arena, yyjson_val *body,
                                 struct sandbox_resources *ret, struct error *err);

/* Members that mean nothing here (project_id, description) are passed over. INVALID_ARGUMENT names
 * the member that cannot be had. */
int scalebox_create_from_json(struct arena *arena, yyjson_val *body,
                              struct scalebox_create_request *ret, struct error *err);
