/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much one sandbox takes of the kernel's tables of admitted addresses, which are everybody's:
 * what it was given, until that has run out. Counted by the minute in which it does, so that nobody
 * has to remember each of them; one that is given again counts again.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

enum { BUDGET_SLOT_MS = 60 * 1000, BUDGET_SLOTS = NET_ADMIT_TTL_MAX_S * 1000 / BUDGET_SLOT_MS + 2 };

struct net_budget {              /* start from a zeroed struct */
    uint64_t minute;             /* the one of the last look */
    unsigned taken;              /* the sum of: */
    uint16_t ends[BUDGET_SLOTS]; /* how many run out in which minute, by its number */
};

/* One more, for so many seconds (at most NET_ADMIT_TTL_MAX_S), of `most` (below 65536) at once.
 * false: it has as many. */
bool budget_take(struct net_budget *budget, uint64_t now_ms, uint32_t seconds, unsigned most);
