/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lists of globs from outside: for names to ignore, to leave out, to find. */

#include <stdbool.h>

#include "base/slice.h"

/* Whether one of the patterns fits the name, or the path (in which `*` also stands for slashes),
 * or a directory that the path is below. */
bool globs_match(struct slice patterns, const char *path, const char *name);
