/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Environment variables and labels: {"NAME": "value"} outside, a list of "NAME=value" strings
 * inside. */

#include "json/json.h"

/*
 * INVALID_ARGUMENT names the variable: a name that is no [A-Za-z_][A-Za-z0-9_]*, a value that is no
 * string or holds a NUL, or more than ENV_VARS_MAX of them; PAYLOAD_TOO_LARGE over ENV_BYTES_MAX.
 * `where` is the member's path in messages. NULL for an object means none.
 */
int env_from_json(struct arena *arena, yyjson_val *object, const char *where, struct slice *ret_env,
                  struct error *err);

/* The same for a change (JSON Merge Patch): a null value is the item "NAME", and means that the
 * variable goes. */
int env_patch_from_json(struct arena *arena, yyjson_val *object, const char *where,
                        struct slice *ret_env, struct error *err);

/* Labels: INVALID_ARGUMENT for a value that is no string, holds a NUL, or (unless patch) is null.
 * What a key may look like is checked by whoever keeps them. */
int labels_from_json(struct arena *arena, yyjson_val *object, bool patch, struct slice *ret_labels,
                     struct error *err);

/* An object with a member for each. */
yyjson_mut_val *env_to_json(yyjson_mut_doc *doc, struct slice env);
