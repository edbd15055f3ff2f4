/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which name an address was told a sandbox for: what goes to it past the proxies shows no name, and
 * people know names. The last TOLD_MAX addresses are known, each with the last of its names. For
 * the log only; nothing is allowed by it.
 */

#include <stddef.h>

#include "network/address.h"

enum { TOLD_MAX = 128 };

struct told { /* start from a zeroed struct */
    struct told_item *items;
    unsigned next; /* to be overwritten */
};

void told_release(struct told *told);
void told_add(struct told *told, const struct net_address *address, const char *name);
/* Borrowed, until the next one is added; NULL: it is not known. */
const char *told_name(const struct told *told, const struct net_address *address);
