/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Processes as Blaxel's clients see them: a pid that is a string, and every member there always.
 * Strings are borrowed until the document is written. */

#include <yyjson.h>

#include "base/arena.h"
#include "sandbox/processes.h"

/* failed, killed, stopped, running or completed */
const char *box_process_status(const struct agent_process *process);

/* What a process has written: both streams in the order of their coming, and each alone. */
struct box_output {
    struct slice logs, out, errors;
};

/* output NULL: its members are empty. */
void box_process_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                      const struct agent_process *process, const struct box_output *output);
void box_output_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const struct box_output *output);
