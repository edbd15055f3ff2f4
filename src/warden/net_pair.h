/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A sandbox's network before there is a sandbox: a network namespace with lo and eth0 up, its cable
 * to the router, addresses and routes on both ends. All but the rules, without which nothing
 * passes: so it can be made ahead (net_stock.h), by index alone.
 *
 * The namespace belongs to the machine's user namespace: root of a sandbox can neither give itself
 * another address nor take the limit off its interface.
 */

#include "warden/net_link.h"
#include "warden/net_router.h"

struct net_pair {
    int index;
    int network_namespace; /* -1: none */
};

#define NET_PAIR_INIT                                                                              \
    {                                                                                              \
        .index = -1, .network_namespace = -1                                                       \
    }

enum { PAIR_FIRST_IFINDEX = 16, PAIR_ETH0 = 2 };

/* How many there can be; addresses and names by index. */
unsigned pair_count_max(const struct router *router);
uint32_t pair_address(const struct router *router, int index);
int pair_ifindex(int index); /* of the router's end */
void pair_name(int index, char out[NET_NAME_SIZE]);
/* Of the router's end (PAIR_NEAR) or the sandbox's. */
enum { PAIR_NEAR = 0, PAIR_FAR = 1 };
void pair_mac(int index, unsigned char side, unsigned char out[NET_MAC_LEN]);
/* -1: not the name of one. */
int pair_index(const char *name);

/* EEXIST (err->sys) when the index is in use. Leaves the caller where it was. */
int pair_make(struct router *router, int index, struct net_pair *ret_pair, struct error *err);
void pair_release(struct net_pair *pair);
