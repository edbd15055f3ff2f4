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

/* It was sent, and has no good answer. False: it could not be run, which is counted. True: whoever
 * asked for it has gone, or has no more time; for all that is known it runs, and is to be handed to
 * unattended_begin_later() (sandbox/unattended.h), without a pid. */
bool process_exec_failed(struct sandbox *sb, const struct agent_exec *request,
                         const struct error *err);
