/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times as text. All are Unix times in ms; all text is UTC. */

#include <stdint.h>

#include "base/error.h"

enum { TIME_TEXT_SIZE = 40 };

int64_t time_now_ms(void);
/* "2023-10-10T15:30:00Z" */
void time_rfc3339(int64_t ms, char out[TIME_TEXT_SIZE]);
/* Reads RFC 3339: "2023-10-10T15:30:00Z", "2023-10-10T17:30:00.123+02:00". Digits behind the third
 * of a fraction are cut off. INVALID_ARGUMENT shows a right one. */
int time_parse_rfc3339(const char *text, int64_t *ret_ms, struct error *err);
/* "Mon, 10 Oct 2023 15:30:00 GMT" */
void time_http(int64_t ms, char out[TIME_TEXT_SIZE]);
