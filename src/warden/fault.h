/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Failing on purpose. A test starts the warden with --fail-at STEP (refused unless CELLA_TEST=1 is
 * in its environment) and then looks for what was left behind.
 */

#include <string.h>

#include "base/error.h"

/* -1 with an error when `step` is the one to fail at (fail_at NULL: none). */
static inline int fault_check(const char *fail_at, const char *step, struct error *err)
{
    if (fail_at == NULL || strcmp(fail_at, step) != 0)
        return 0;
    return error_set(err, ERROR_INTERNAL, "failing at \"%s\", as asked", step);
}
