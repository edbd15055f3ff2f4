/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The limits of one command: {"memory": "256Mi", "timeout": 10, "processes": 16, "output": "1Mi",
 * "openFiles": 64}, each of them optional. */

#include "json/json.h"
#include "wire/messages.h"

/* object NULL: none. `where` is its path in messages. INVALID_QUANTITY, INVALID_ARGUMENT. */
int command_limits_from_json(struct arena *arena, yyjson_val *object, const char *where,
                             struct command_limits *ret_limits, struct error *err);
