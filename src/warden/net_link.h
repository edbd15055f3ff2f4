/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Interfaces, addresses, routes and queues: what the warden asks of rtnetlink. Every function works
 * in the network namespace that its socket was made in.
 */

#include <stdbool.h>
#include <stdint.h>

#include "warden/netlink.h"

enum { NET_MAC_LEN = 6, NET_NAME_SIZE = 16 };

struct net_end {
    const char *name;
    int ifindex; /* 0: any */
    unsigned char mac[NET_MAC_LEN];
    bool arp; /* else the neighbour is told */
};

struct net_cable {
    struct net_end near, far;
    int far_namespace; /* a descriptor */
};

/* A veth. The near end is up; the far one cannot be brought up before both are there. EEXIST
 * (err->sys) when a name is taken. */
int link_make_cable(struct netlink *route, const struct net_cable *cable, struct error *err);
int link_remove(struct netlink *route, const char *name, struct error *err);
int link_up(struct netlink *route, int ifindex, struct error *err);
/* 0: there is none. */
int link_find(struct netlink *route, const char *name);

/* Host-order IPv4. */
struct net_way {
    int ifindex;
    uint32_t own; /* its own address; 0: it gets none */
    unsigned own_bits;
    uint32_t neighbour; /* its only one, with its MAC; 0: it asks for its neighbours */
    unsigned char mac[NET_MAC_LEN];
    uint32_t to; /* what is reached through it */
    unsigned to_bits;
    uint32_t via; /* 0: directly */
};

/* Address, neighbour and route, in one call. */
int link_address(struct netlink *route, const struct net_way *way, struct error *err);

/* The same of IPv6, in network order; NULL: none. */
struct net_way6 {
    int ifindex;
    const unsigned char *own;
    unsigned own_bits;
    const unsigned char *neighbour;
    unsigned char mac[NET_MAC_LEN];
    const unsigned char *to;
    unsigned to_bits;
    const unsigned char *via;
};

int link_address6(struct netlink *route, const struct net_way6 *way, struct error *err);

/* Whether there is a way to this IPv6 address that leads somewhere. */
bool link_has_route6(struct netlink *route, const unsigned char to[16]);
/* The interfaces of routes that were learned from IPv6 routers' advertisements. */
typedef void (*route_fn)(int ifindex, void *arg);
int link_each_learned_route6(struct netlink *route, route_fn fn, void *arg, struct error *err);

/* What leaves through it, at most so many bytes per second; 0: no limit (any more). */
int link_limit(struct netlink *route, int ifindex, uint64_t bytes_per_second, struct error *err);

struct link_counters {
    uint64_t in_bytes, out_bytes, in_packets, out_packets; /* as the interface sees it */
};

int link_count(struct netlink *route, int ifindex, struct link_counters *ret_counters,
               struct error *err);

/* Every interface's name. */
typedef void (*link_fn)(const char *name, int ifindex, void *arg);
int link_each(struct netlink *route, link_fn fn, void *arg, struct error *err);

/* Whether an address of this IPv4 network is somebody's here. */
int link_has_address(struct netlink *route, uint32_t network, unsigned bits, bool *ret_has,
                     struct error *err);
