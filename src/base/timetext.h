/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times as text. All are Unix times in ms; all text is UTC. */

#include <stdint.h>

enum { TIME_TEXT_SIZE = 40 };

int64_t time_now_ms(void);
/* "2023-10-10T15:30:00Z" */
void time_rfc3339(int64_t ms, char out[TIME_TEXT_SIZE]);
/* "Mon, 10 Oct 2023 15:30:00 GMT" */
void time_http(int64_t ms, char out[TIME_TEXT_SIZE]);
