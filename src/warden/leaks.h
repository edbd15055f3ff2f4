/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is left on the machine that belongs to no sandbox. Reads lines "ID running" and "ID stopped"
 * (what the database knows) from `in`, prints a line per leaked thing to `out`, changes nothing.
 */

#include <stdio.h>

#include "base/error.h"

int leaks_print(const char *data, FILE *in, FILE *out, int *ret_count, struct error *err);
