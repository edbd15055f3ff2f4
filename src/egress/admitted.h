/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the kernel was told to let through, and until when: a program that looks a name up for each
 * of its connections does not have the warden asked each time. The last ADMITTED_MAX are known; one
 * that is not is admitted again, which does no harm.
 *
 * A new policy makes the kernel forget what it was told. The warden gets it a little later than
 * this process, so what is admitted right after one is not relied on.
 */

#include <stdbool.h>
#include <stdint.h>

#include "network/policy.h"

enum { ADMITTED_MAX = 128, ADMITTED_SETTLE_MS = 10 * 1000 };

struct admitted { /* start from a zeroed struct */
    struct admitted_item *items;
    unsigned next; /* to be overwritten */
    int64_t since_ms;
};

void admitted_release(struct admitted *admitted);
/* There is a new policy. */
void admitted_reset(struct admitted *admitted, int64_t now_ms);
/* Whether this is let through until then at least. */
bool admitted_has(const struct admitted *admitted, const struct net_address *address,
                  const struct net_admission *ports, int64_t until_ms);
void admitted_add(struct admitted *admitted, const struct net_address *address,
                  const struct net_admission *ports, int64_t until_ms, int64_t now_ms);
