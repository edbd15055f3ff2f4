/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The routes of /api/sandbox. */

#include <stddef.h>

#include "http/router.h"

extern const struct route aisandbox_routes[];
extern const size_t aisandbox_route_count;
