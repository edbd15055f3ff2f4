/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A sandbox as Blaxel's control plane shows it. Strings are borrowed from the info until the
 * document is written. */

#include <yyjson.h>

#include "base/arena.h"
#include "sandbox/sandbox.h"

/* "DEPLOYED" for running, and so on. */
const char *blaxel_status(enum sandbox_status status);

/* base_url has no slash at its end. Lists have no events. */
yyjson_mut_val *blaxel_sandbox_json(struct arena *arena, yyjson_mut_doc *doc,
                                    const struct sandbox_info *info, const char *base_url,
                                    bool with_events);
