/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The route tables of the Blaxel dialects. */

#include <stddef.h>

#include "http/router.h"

extern const struct route blaxel_routes[];
extern const size_t blaxel_route_count;

extern const struct route preview_routes[];
extern const size_t preview_route_count;

extern const struct route blaxel_box_routes[];
extern const size_t blaxel_box_route_count;
