/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lengths of time as people write them: "30s", "15m", "1h", "7d", "1h30m"; a number alone is in
 * seconds. INVALID_ARGUMENT shows right ones for empty text, unknown units, fractions, signs and
 * what does not fit.
 */

#include <stdint.h>

#include "base/error.h"

enum { DURATION_TEXT_SIZE = 48 };

int duration_seconds(const char *text, uint64_t *ret_seconds, struct error *err);
/* The other way: "90s" as "1m30s", in days, hours, minutes and seconds. */
void duration_text(uint64_t seconds, char out[DURATION_TEXT_SIZE]);
