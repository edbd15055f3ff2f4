/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A log that does not end: each entry is printed as it comes, until the server or Ctrl-C ends it.
 * With --output json an entry is a line of JSON, as the server has it. */

#include "base/buf.h"
#include "cli/command.h"
#include "json/json.h"

/* Appends an entry as people read it, with the line's end. */
typedef int follow_text(struct arena *arena, struct buf *out, yyjson_val *entry, struct error *err);

/* Asks for the target, which has to answer with events. */
int follow_entries(struct invocation *inv, const struct buf *target, follow_text *text,
                   struct error *err);
