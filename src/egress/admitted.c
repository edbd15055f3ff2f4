/* SPDX-License-Identifier: Apache-2.0 */

/* A short list, looked through from end to end: it is asked once per question. */

#include "egress/admitted.h"

#include <stdlib.h>

struct admitted_item {
    struct net_address address;
    struct net_admission ports;
    int64_t until_ms; /* 0: free */
};

void admitted_release(struct admitted *admitted)
{
    free(admitted->items);
    *admitted = (struct admitted){0};
}

void admitted_reset(struct admitted *admitted, int64_t now_ms)
{
    admitted_release(admitted);
    admitted->since_ms = now_ms;
}

static struct admitted_item *find(const struct admitted *admitted,
                                  const struct net_address *address,
                                  const struct net_admission *ports)
{
    for (unsigned i = 0; admitted->items != NULL && i < ADMITTED_MAX; i++) {
        struct admitted_item *item = &admitted->items[i];
        if (item->until_ms != 0 && item->ports.protocol == ports->protocol &&
            item->ports.low == ports->low && item->ports.high == ports->high &&
            net_address_eq(&item->address, address))
            return item;
    }
    return NULL;
}

bool admitted_has(const struct admitted *admitted, const struct net_address *address,
                  const struct net_admission *ports, int64_t until_ms)
{
    const struct admitted_item *item = find(admitted, address, ports);
    return item != NULL && item->until_ms >= until_ms;
}

void admitted_add(struct admitted *admitted, const struct net_address *address,
                  const struct net_admission *ports, int64_t until_ms, int64_t now_ms)
{
    if (now_ms - admitted->since_ms < ADMITTED_SETTLE_MS)
        return;
    if (admitted->items == NULL)
        admitted->items = calloc(ADMITTED_MAX, sizeof(*admitted->items));
    if (admitted->items == NULL)
        return;
    struct admitted_item *item = find(admitted, address, ports);
    if (item == NULL)
        item = &admitted->items[admitted->next++ % ADMITTED_MAX];
    *item = (struct admitted_item){.address = *address, .ports = *ports, .until_ms = until_ms};
}
