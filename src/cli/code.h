/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Running a piece of code, for those who ask for it in different ways. On a coroutine. */

#include "base/slice.h"
#include "cli/command.h"

/* Runs it as the options say, in a language (NULL: as the options say that, too), and shows what
 * comes of it. *status: the run's. */
int code_run_shown(const struct invocation *inv, struct slice code, const char *language,
                   int *status, struct error *err);
