/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Commands whose end nobody waits for: those that are started in the background, and those whose
 * reader has left, or whoever waited. Their end is asked for all the same, so that it is counted,
 * in the audit log and looked into for history as everybody's is. One that ends with its sandbox
 * has no end of its own, and is not counted.
 */

#include "sandbox/state.h"
#include "wire/messages.h"

/* On a coroutine, with an agent that has just answered. pid 0: nobody was told it; the agent knows
 * the execution, if that has begun at all. run: the witness's (sandbox/witness.h), which is taken
 * over; NULL: there is none. */
void unattended_begin(struct sandbox *sb, uint64_t pid, const char *execution, void *run);
/* The same where the caller may not wait, and the agent may have to be connected to first. */
void unattended_begin_later(struct sandbox *sb, uint64_t pid, const char *execution, void *run);
