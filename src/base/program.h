/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the programs of one installation have in common: where they find each other, and limits. */

#include <stddef.h>

#include "base/error.h"

/*
 * The path of another program of ours: beside the one that runs (a build folder), or in
 * ../libexec/cella from there (an installation). FILE_NOT_FOUND names both places. out holds size
 * bytes.
 */
int program_path(const char *name, char *out, size_t size, struct error *err);

/* As many open files as this process may have: shells and services start with the 1024 that
 * select() can count to. */
void program_allow_files(void);
