/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Contexts as Scalebox's clients name them. Its control plane knows a context by its id alone, so
 * ids that are told there begin with the sandbox's: "SANDBOX.CONTEXT". Both forms are taken
 * wherever a sandbox is known.
 */

#include "api/call.h"
#include "code/code.h"

/* A member that is a text; an empty one is how the protocol says that there is none: NULL. */
int scalebox_text(yyjson_val *message, const char *name, const char **ret, struct error *err);

/* The id without the sandbox's; CODE_CONTEXT_NOT_FOUND when it is another sandbox's. */
int scalebox_context_id(const char *sandbox, const char *id, const char **ret_id,
                        struct error *err);

/* Which sandbox a request of the control plane is for that names none, or "default": the only one
 * of the workspace that runs. INVALID_ARGUMENT when there are several, or none. */
int scalebox_only_sandbox(struct http_exchange *x, const struct api_call *call, const char **ret_id,
                          struct error *err);

/* Lets contexts go that were left behind, where there are too many: a default one needs room too.
 */
int scalebox_make_room(struct code *code, const struct code_place *place, struct error *err);
