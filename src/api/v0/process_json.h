/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Processes and their output as clients see them. Strings are borrowed until the document is
 * written. */

#include <yyjson.h>

#include "base/arena.h"
#include "sandbox/processes.h"

/* running, completed, failed, stopped, killed or timeout */
const char *process_status(const struct agent_process *process);

/* pid, command, status, startedAt, completedAt, exitCode, reason, workingDir; name, keepAlive,
 * stdin (whether it is open), restartOnFailure, maxRestarts, restartCount */
void process_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                  const struct agent_process *process);

/* stdout and stderr, and both together as "logs" (NULL: without). What was dropped is told by a
 * first line in the text and, in bytes, by "dropped"; output that is no UTF-8 is there again,
 * exact, as stdoutBase64 and stderrBase64. */
void process_output_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                         const struct process_log *out, const struct process_log *errors,
                         const struct process_log *both);
