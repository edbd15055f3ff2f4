/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* tar, which knows sparse files, links, owners and extended attributes better than we would. */

#include "base/error.h"

/* Runs tar with these arguments (ended by NULL; argv[0] too) and these as its standard input and
 * output; -1: none. UNAVAILABLE when it is not there, INVALID_ARGUMENT with `what` when it fails.
 */
int archive_run(const char *const *argv, int in, int out, const char *what, struct error *err);
