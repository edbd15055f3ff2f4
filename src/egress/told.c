/* SPDX-License-Identifier: Apache-2.0 */

/* A short list, looked through from end to end, as in admitted.c. */

#include "egress/told.h"

#include <stdlib.h>
#include <string.h>

struct told_item {
    struct net_address address; /* family 0: free */
    char *name;
};

void told_release(struct told *told)
{
    for (unsigned i = 0; told->items != NULL && i < TOLD_MAX; i++)
        free(told->items[i].name);
    free(told->items);
    *told = (struct told){0};
}

static struct told_item *find(const struct told *told, const struct net_address *address)
{
    for (unsigned i = 0; told->items != NULL && i < TOLD_MAX; i++)
        if (told->items[i].address.family != 0 && net_address_eq(&told->items[i].address, address))
            return &told->items[i];
    return NULL;
}

const char *told_name(const struct told *told, const struct net_address *address)
{
    const struct told_item *item = find(told, address);
    return item == NULL ? NULL : item->name;
}

void told_add(struct told *told, const struct net_address *address, const char *name)
{
    if (told->items == NULL)
        told->items = calloc(TOLD_MAX, sizeof(*told->items));
    if (told->items == NULL)
        return;
    struct told_item *item = find(told, address);
    if (item != NULL && strcmp(item->name, name) == 0)
        return;
    char *own = strdup(name);
    if (own == NULL)
        return;
    if (item == NULL)
        item = &told->items[told->next++ % TOLD_MAX];
    free(item->name);
    *item = (struct told_item){.address = *address, .name = own};
}
