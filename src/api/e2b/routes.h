/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The route tables of E2B's clients: its control plane, and the inside of sandboxes. */

#include <stddef.h>

#include "http/router.h"

extern const struct route e2b_routes[];
extern const size_t e2b_route_count;
extern const struct route e2b_envd_routes[];
extern const size_t e2b_envd_route_count;
