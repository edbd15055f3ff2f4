/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The route table of the whole API. */

#include <stddef.h>

#include "http/router.h"

extern const struct route api_routes[];
extern const size_t api_route_count;
