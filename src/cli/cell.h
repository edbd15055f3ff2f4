/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A piece of code as it is typed, line by line: whether it is whole. */

#include <stdbool.h>

#include "base/slice.h"

/*
 * Whether more has to come before it makes sense to run it: an open bracket or string, a line that
 * says it goes on, a block that an empty line has not ended yet. A guess: an empty line ends
 * whatever is only open by indentation, and what is not whole after all is the interpreter's to
 * refuse.
 */
bool cell_wants_more(const char *language, struct slice code);
