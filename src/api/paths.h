/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths of files as they stand in request targets: `a/b`, `/a/b` (a double slash in the target) and
 * `%2Fa%2Fb` are the same, from the root; the empty one is the root. Blaxel's rules are its own
 * (api/blaxel/box.h).
 */

#include "http/router.h"

/* The path in the route's parameter `name`, absolute and normalized, in the exchange's arena.
 * INVALID_PATH as path_normalize(). */
int api_path(struct http_exchange *x, const struct route_params *params, const char *name,
             const char **ret_path, struct error *err);

/* `path` below `root`, joined and normalized; INVALID_PATH when it leads out of it. An absolute
 * path is taken as it is, and must be below root as well. */
int api_path_below(struct arena *arena, const char *root, const char *path, const char **ret_path,
                   struct error *err);

/* Whether path is root or below it. Both normalized. */
bool api_path_is_below(const char *root, const char *path);
