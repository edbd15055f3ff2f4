/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The body of POST /process. */

#include "json/json.h"
#include "wire/messages.h"

struct process_request {
    struct agent_exec exec; /* EXEC_WAIT: its end is waited for */
    const uint16_t *ports;  /* waitForPorts */
    size_t port_count;
};

/* What is to be run, a command line or an array of a program and its arguments, into exec->command
 * or exec->argv. INVALID_ARGUMENT. */
int process_command_from_json(struct arena *arena, yyjson_val *given, struct agent_exec *exec,
                              struct error *err);

/* body may be NULL (no body): then the command is missing. INVALID_ARGUMENT, INVALID_PATH,
 * UNKNOWN_FIELD. Of stdin: a text is all the input of a process that is waited for, and the first
 * of one that is not. */
int process_exec_from_json(struct arena *arena, yyjson_val *body,
                           struct process_request *ret_request, struct error *err);

/* The same of a message that starts a command over a WebSocket (api/v0/exec_message.h), whose own
 * members stand beside those of the command. */
int process_exec_from_message(struct arena *arena, yyjson_val *message,
                              struct process_request *ret_request, struct error *err);
