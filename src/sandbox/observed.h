/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Figures about all sandboxes together, from what is in memory: nobody is asked. */

#include "observe/meters.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

void sandboxes_tell(struct sandboxes *s, struct meter_sink *sink);

/* A command has ended: how, and how long it ran. */
void execution_ended(struct loop *loop, const struct agent_process *process);
/* … or could not be run to its end. */
void execution_failed(struct loop *loop, const struct error *why);
