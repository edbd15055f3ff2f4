/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files about processes share: reading who is meant, and completing what is to run. */

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/state.h"
#include "wire/messages.h"

/* A pid or a name, as text (borrowed). INVALID_ARGUMENT when it can be neither. */
int process_ref(const char *process, struct agent_ref *ret_ref, struct error *err);

/* A request as the agent gets it: the sandbox's environment and defaults laid under it, and its
 * security options over it. What is to be logged has been when this returns. */
int process_exec_request(struct sandbox *sb, const char *actor, const struct agent_exec *exec,
                         struct arena *arena, struct agent_exec *ret_request, struct error *err);
