/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The router: one network namespace per server, in which all sandboxes' cables end and all rules
 * on them live. It is kept by a mount in the data folder (DIR/run/router), so that it outlives the
 * warden as sandboxes do; one cable leads from it to the machine's network.
 *
 *     sandbox eth0 ── cv<i> ┐
 *     sandbox eth0 ── cv<i> ┤ router  up0 ── cellaup<instance>  machine
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "warden/net_link.h"
#include "warden/net_six.h"
#include "warden/netlink.h"

enum { ROUTER_NAME_SIZE = 16 };

struct router_options {
    const char *range;     /* "10.201.0.0/16" */
    const char *range6;    /* of IPv6: "fd12:3456:789a::/64"; NULL: one of its own */
    const char *opened;    /* private prefixes that sandboxes may reach, with commas; or "" */
    const char *resolvers; /* addresses that egress asks, with commas; or "" */
    uid_t egress;          /* its user; 0: none */
};

struct router {
    int home;             /* the machine's network namespace: the warden's own */
    int fd;               /* the router's; -1: there is none */
    struct netlink route; /* in the router */
    struct netlink rules; /* nf_tables, in the router */
    uint32_t range;       /* host order */
    unsigned range_bits;
    uint32_t gateway;
    struct six six;
    char uplink[ROUTER_NAME_SIZE]; /* the machine's end */
};

#define ROUTER_INIT                                                                                \
    {                                                                                              \
        .home = -1, .fd = -1, .route = NETLINK_INIT, .rules = NETLINK_INIT                         \
    }

/* "10.201.0.0/16": 8 to 28 bits, in a private range. INVALID_ARGUMENT. */
int router_parse_range(const char *text, uint32_t *ret_range, unsigned *ret_bits,
                       struct error *err);

/* In the machine's mount namespace, before the warden enters its own: makes what does not exist
 * yet. `ret_fresh`: whether the router is new. */
int router_mount(struct router *router, const char *data, bool *ret_fresh, struct error *err);

/* The rest: rules, cable, addresses. What an earlier warden has left is brought up to date, and
 * open connections go on. */
int router_open(struct router *router, const struct router_options *options, const char *instance,
                bool fresh, struct error *err);

/* Forgets it; sandboxes go on using it. */
void router_close(struct router *router);

/* Takes the router down, in the machine's mount namespace. Nothing to take down is fine. */
void router_remove(const char *data, const char *instance);

/* Whether a descriptor is a namespace, and not the file that one is mounted on. */
bool router_is_namespace(int fd);

/* The names of what a router has in the machine's network. */
void router_uplink_name(const char *instance, char out[ROUTER_NAME_SIZE]);

/* The machine's end of its cable, or the router's. */
enum router_end { ROUTER_OUTSIDE = 0, ROUTER_INSIDE = 1 };
void router_cable_mac(enum router_end end, unsigned char out[NET_MAC_LEN]);

/* Runs in another network namespace and comes back; what fn returns. */
int router_within(const struct router *router, int network_namespace,
                  int (*fn)(void *arg, struct error *err), void *arg, struct error *err);
