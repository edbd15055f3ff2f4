/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the programs of one installation find each other. */

#include <stddef.h>

#include "base/error.h"

/*
 * The path of another program of ours: beside the one that runs (a build folder), or in
 * ../libexec/cella from there (an installation). FILE_NOT_FOUND names both places. out holds size
 * bytes.
 */
int program_path(const char *name, char *out, size_t size, struct error *err);
