/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A sandbox of a group has everything below /v0/groups/{group}/sandbox/{name} that one in none has
 * below /v0/sandbox/{name}. So the former is read as /v0/sandbox/{group}%2F{name}, before a row is
 * looked for: every row there is, with its scope, serves both, and one that is added tomorrow too.
 */

#include "base/arena.h"

/* The path that routes are found by; still encoded, as it came, and in the arena where it differs.
 */
const char *group_path(struct arena *arena, const char *path);
