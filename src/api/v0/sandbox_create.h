/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The body of POST /v0/sandbox. */

#include "json/json.h"
#include "sandbox/sandbox.h"

/*
 * Fills name, metadata, image, resources, env and enabled; the rest of *request is left alone. body
 * may be NULL (no body): then everything has its default. UNKNOWN_FIELD, INVALID_ARGUMENT. What
 * only the server sets (createdAt, status, access, …) is accepted and ignored, so that what GET
 * answered can be sent.
 */
int sandbox_create_from_json(struct arena *arena, yyjson_val *body, struct sandbox_create *request,
                             struct error *err);
