/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The routes of Scalebox's clients: the control plane's, and those inside a sandbox. */

#include <stddef.h>

#include "http/router.h"

extern const struct route scalebox_routes[];
extern const size_t scalebox_route_count;
extern const struct route scalebox_box_routes[];
extern const size_t scalebox_box_route_count;

/* Whether a path, still encoded, is one of the inside that nobody else has. */
bool scalebox_box_path(const char *path);
