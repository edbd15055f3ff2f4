/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The body of POST /api/sandbox. */

#include "json/json.h"
#include "sandbox/resources.h"

struct aisandbox_create_request {
    const char *image;                  /* "": the default */
    struct sandbox_resources resources; /* in our own notation */
    int64_t timeout_ms;                 /* of an execution */
};

/* body NULL: all as by default. INVALID_ARGUMENT, INVALID_QUANTITY, UNKNOWN_FIELD. */
int aisandbox_create_from_json(struct arena *arena, yyjson_val *body,
                               struct aisandbox_create_request *ret_request, struct error *err);
