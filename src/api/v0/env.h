/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Environment variables: {"NAME": "value"} outside, a list of "NAME=value" strings inside. */

#include "json/json.h"

/*
 * INVALID_ARGUMENT names the variable: a name that is no [A-Za-z_][A-Za-z0-9_]*, a value that is no
 * string or holds a NUL, or more than ENV_VARS_MAX of them; PAYLOAD_TOO_LARGE over ENV_BYTES_MAX.
 * `where` is the member's path in messages. NULL for an object means none.
 */
int env_from_json(struct arena *arena, yyjson_val *object, const char *where, struct slice *ret_env,
                  struct error *err);

/* An object with a member for each variable. */
yyjson_mut_val *env_to_json(yyjson_mut_doc *doc, struct slice env);
