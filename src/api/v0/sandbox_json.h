/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A sandbox as the control plane shows it. Strings are borrowed from the info until the document
 * is written. */

#include <yyjson.h>

#include "base/arena.h"
#include "sandbox/sandbox.h"

/* metadata, spec, status, events; and access, unless base_url (no slash at its end) is NULL. */
yyjson_mut_val *sandbox_json(struct arena *arena, yyjson_mut_doc *doc,
                             const struct sandbox_info *info, const char *base_url);

/* What start, stop and delete answer: name, workspace, status and a sentence about it. */
void sandbox_change_json(yyjson_mut_doc *doc, yyjson_mut_val *root,
                         const struct sandbox_info *info);
