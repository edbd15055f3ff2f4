/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the handlers of a sandbox's /process share. */

#include "api/blaxel/process_json.h"
#include "api/v0/process.h"

/* All that is kept of the output of a process of place's sandbox. */
int box_process_output(struct arena *arena, const struct process_place *place,
                       const struct agent_process *process, struct box_output *ret_output,
                       struct error *err);
