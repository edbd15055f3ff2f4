/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lengths of time as people write them: "30s", "15m", "1h", "7d", "1h30m"; a number alone is in
 * seconds. INVALID_ARGUMENT shows right ones for empty text, unknown units, fractions, signs and
 * what does not fit.
 */

#include <stdint.h>

#include "base/error.h"

int duration_seconds(const char *text, uint64_t *ret_seconds, struct error *err);
