/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What all processes write, seen as one log of the sandbox: which of them have written since a
 * reader looked last, and when each byte came.
 */

#include "agent/requests.h"

struct agent;
struct process;

/* To be called before bytes are added to a stream (0: stdout, 1: stderr). */
void journal_stamp(struct agent *agent, struct process *process, unsigned stream);

/* AGENT_CHANGES, AGENT_TIMED_READ */
request_handler journal_changes, journal_read;
