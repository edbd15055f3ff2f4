/* SPDX-License-Identifier: Apache-2.0 */

/* A wheel of minutes: those that have gone by are emptied at the next look. */

#include "warden/net_budget.h"

static void forget_past(struct net_budget *budget, uint64_t now)
{
    uint64_t gone = now > budget->minute ? now - budget->minute : 0;
    for (uint64_t i = 0; i < gone && i < BUDGET_SLOTS; i++) {
        uint16_t *slot = &budget->ends[(budget->minute + i) % BUDGET_SLOTS];
        budget->taken -= *slot;
        *slot = 0;
    }
    budget->minute += gone;
}

bool budget_take(struct net_budget *budget, uint64_t now_ms, uint32_t seconds, unsigned most)
{
    forget_past(budget, now_ms / BUDGET_SLOT_MS);
    if (budget->taken >= most)
        return false;
    uint64_t end = (now_ms + (uint64_t)seconds * 1000) / BUDGET_SLOT_MS;
    budget->ends[end % BUDGET_SLOTS]++;
    budget->taken++;
    return true;
}
