/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the verbs of `cella sandbox` share. */

#include "cli/command.h"
#include "json/json.h"

/* METHOD /v0/sandbox[/name[/verb]] with a body (NULL: none), and the JSON that comes back. */
int sandbox_call(struct invocation *inv, const char *method, const char *name, const char *verb,
                 yyjson_mut_doc *body, yyjson_val **ret_root, struct error *err);
