/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The body of POST /process. */

#include "json/json.h"
#include "wire/messages.h"

/* body may be NULL (no body): then the command is missing. INVALID_ARGUMENT, INVALID_PATH,
 * UNKNOWN_FIELD. */
int process_exec_from_json(struct arena *arena, yyjson_val *body, struct agent_exec *ret_exec,
                           struct error *err);
