/* SPDX-License-Identifier: Apache-2.0 */

/*
 * No ARP and no bridge: each end knows the other's address for good. The interfaces' numbers follow
 * from the index, so that nobody has to ask for them.
 */

#include "warden/net_pair.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/files.h"

enum { LO = 1, RESERVED = 3 }; /* the network, the gateway, the broadcast address */

/*
 * What root of the sandbox could set in a namespace of its own, as it would have it there. `all`
 * sets what interfaces to come start with, too; every row costs a look-up that no cache shortens.
 */
static const struct {
    const char *path, *value;
} knobs[] = {
    {"/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"},
    {"/proc/sys/net/ipv6/conf/lo/disable_ipv6", "0"},
    {"/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"},
    {"/proc/sys/net/ipv4/ping_group_range", "0 2147483647"},
};

unsigned pair_count_max(const struct router *router)
{
    return (UINT32_MAX >> router->range_bits) + 1 - RESERVED;
}

uint32_t pair_address(const struct router *router, int index)
{
    return router->gateway + 1 + (uint32_t)index;
}

int pair_ifindex(int index)
{
    return PAIR_FIRST_IFINDEX + index;
}

void pair_name(int index, char out[NET_NAME_SIZE])
{
    snprintf(out, NET_NAME_SIZE, "cv%d", index);
}

int pair_index(const char *name)
{
    char *end;
    if (strncmp(name, "cv", 2) != 0 || name[2] < '0' || name[2] > '9')
        return -1;
    long index = strtol(name + 2, &end, 10);
    return *end == '\0' && index < 1 << 24 ? (int)index : -1;
}

void pair_mac(int index, unsigned char side, unsigned char out[NET_MAC_LEN])
{
    out[0] = 0x02; /* of our own making */
    out[1] = side;
    out[2] = 0xce;
    for (int i = 0; i < 3; i++)
        out[3 + i] = (unsigned char)(index >> (8 * (2 - i)));
}

struct making {
    struct router *router;
    struct net_pair pair;
    struct net_cable cable;
    char name[NET_NAME_SIZE];
};

/* In the new namespace. */
static int furnish(struct making *making, struct error *err)
{
    const struct router *router = making->router;
    struct netlink route = NETLINK_INIT;
    struct error missing;
    for (size_t i = 0; i < ARRAY_LEN(knobs); i++) /* not every kernel has all of them */
        (void)file_write_at(AT_FDCWD, knobs[i].path, knobs[i].value, &missing);
    making->cable.far_namespace = making->pair.network_namespace;
    if (nl_open(NETLINK_ROUTE, &route, err) < 0)
        return -1;
    struct net_way way = {.ifindex = PAIR_ETH0,
                          .own = pair_address(router, making->pair.index),
                          .own_bits = 32,
                          .neighbour = router->gateway,
                          .via = router->gateway};
    memcpy(way.mac, making->cable.near.mac, sizeof(way.mac));
    int r = link_make_cable(&making->router->route, &making->cable, err);
    if (r == 0)
        r = link_up(&route, LO, err);
    if (r == 0)
        r = link_up(&route, PAIR_ETH0, err);
    if (r == 0)
        r = link_address(&route, &way, err);
    nl_close(&route);
    return r;
}

static int make_inside(struct making *making, struct error *err)
{
    if (unshare(CLONE_NEWNET) < 0)
        return error_sys(err, "making a network namespace");
    making->pair.network_namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int r = making->pair.network_namespace < 0 ? error_sys(err, "opening a network namespace")
                                               : furnish(making, err);
    if (setns(making->router->home, CLONE_NEWNET) < 0) {
        log_error("the way back to the machine's network is gone: %m");
        abort(); /* the next warden adopts everything */
    }
    return r;
}

int pair_make(struct router *router, int index, struct net_pair *ret_pair, struct error *err)
{
    struct making making = {.router = router, .pair = NET_PAIR_INIT};
    making.pair.index = index;
    pair_name(index, making.name);
    making.cable.near = (struct net_end){.name = making.name, .ifindex = pair_ifindex(index)};
    making.cable.far = (struct net_end){.name = "eth0", .ifindex = PAIR_ETH0};
    pair_mac(index, PAIR_NEAR, making.cable.near.mac);
    pair_mac(index, PAIR_FAR, making.cable.far.mac);
    struct net_way way = {.ifindex = pair_ifindex(index),
                          .neighbour = pair_address(router, index),
                          .to = pair_address(router, index),
                          .to_bits = 32};
    memcpy(way.mac, making.cable.far.mac, sizeof(way.mac));
    if (make_inside(&making, err) < 0 || link_address(&router->route, &way, err) < 0) {
        pair_release(&making.pair);
        return -1;
    }
    *ret_pair = making.pair;
    return 0;
}

void pair_release(struct net_pair *pair)
{
    cleanup_fd(&pair->network_namespace);
    *pair = (struct net_pair)NET_PAIR_INIT;
}
