/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Scopes as a list in JSON: ["read", "write"]. */

#include "base/error.h"
#include "json/json.h"

/* As "scopes" of the object. */
void scopes_add(yyjson_mut_doc *doc, yyjson_mut_val *object, unsigned scopes);

/* Each with those that it includes; read and write when list is NULL. INVALID_ARGUMENT names the
 * item that is none of those that are known ("read, write"). */
int scopes_read(yyjson_val *list, const char *known, unsigned *ret_scopes, struct error *err);
