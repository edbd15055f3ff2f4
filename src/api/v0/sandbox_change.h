/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bodies of POST …/clone and of PUT and PATCH of a sandbox. UNKNOWN_FIELD, INVALID_ARGUMENT;
 * what only the server sets is accepted and ignored, as in the body of POST /v0/sandbox. */

#include "json/json.h"
#include "sandbox/sandbox.h"

/*
 * Fills everything but workspace, source and actor. In two forms, or mixed: flat
 *     {"name": "x", "resources": {"cpu": "2"}}, {"name": "x", "cpu": "2", "memory": "2Gi"}
 * and as a sandbox is created
 *     {"metadata": {"name": "x"}, "spec": {"resources": {"cpu": "2"}}}
 * A value that is given twice, and differently, is INVALID_ARGUMENT. body may be NULL.
 */
int sandbox_clone_from_json(struct arena *arena, yyjson_val *body, struct sandbox_clone *request,
                            struct error *err);

/*
 * Fills everything but workspace, name and actor. What is not given stays as it is. env_vars and
 * labels are replaced as a whole, or (patch) changed member by member, where null removes one.
 * metadata.name may be given and has to be the sandbox's. lifecycle, too, is replaced as a whole or
 * changed member by member.
 */
int sandbox_update_from_json(struct arena *arena, yyjson_val *body, bool patch, const char *name,
                             struct sandbox_update *request, struct error *err);

/* {"cpu": "2", …} or {"factor": 0.5}: resources or factor of an update. */
int resize_from_json(struct arena *arena, yyjson_val *body, struct sandbox_update *update,
                     struct error *err);
