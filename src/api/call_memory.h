/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much memory a caller's requests may hold together (base/memory.h). A caller is an API key, a
 * sandbox with its own token, or an address without a key, as for rates (call_limits.h).
 */

#include "api/call_limits.h"
#include "http/server.h"

enum { MEMORY_RETRY_S = 2 }; /* Retry-After of what is refused: requests seldom take longer */

/* Counts what the request holds, from its beginning to its end, against this caller's budget and
 * not against another one's that it was counted against before. */
void limits_memory_join(struct limits *limits, struct http_exchange *x, struct caller caller);

/* Whose requests hold some; for tests. */
unsigned limits_memory_owners(const struct limits *limits);
