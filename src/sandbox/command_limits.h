/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Limits of one command in a sandbox (struct command_limits of wire/messages.h), for whoever has
 * one run: an exec, a process, a tool. They are given with struct agent_exec; sandbox_exec() and
 * process_output_exec() do everything else, and process_reason() says which one was hit.
 */

#include "base/error.h"
#include "sandbox/state.h"
#include "wire/messages.h"

/* Against the sandbox's own, which hold in any case: one that is above them would be a promise that
 * nobody keeps, and is INVALID_ARGUMENT. */
int command_limits_check(const struct sandbox *sb, const struct command_limits *limits,
                         struct error *err);

/* Has the sandbox's agent be able to hold them. At once when it is, or when they need nothing; else
 * it waits, for the provider and for the agent. */
int command_limits_prepare(struct sandboxes *s, const char *workspace, const char *name,
                           const struct command_limits *limits, struct error *err);
