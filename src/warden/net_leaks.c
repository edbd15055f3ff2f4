/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An interface goes when the last process of its sandbox has gone, in the kernel's own time: those
 * that nobody has are looked at again for a while. Some are never anybody's: the stock.
 */

#include "warden/net_leaks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "warden/net_filter.h"
#include "warden/net_pair.h"
#include "warden/net_stock.h"

enum { PATIENCE_MS = 15 * 1000, LOOK_MS = 50, READY_MAX = 2 * STOCK_SIZE };

struct count {
    const struct net_leaks *leaks;
    size_t strangers;
    bool tell;
};

static void see_link(const char *name, int ifindex, void *arg)
{
    struct count *count = arg;
    int index = pair_index(name);
    if (index < 0 || count->leaks->is_running(count->leaks->arg, index))
        return;
    if (++count->strangers > READY_MAX && count->tell)
        count->leaks->leak(count->leaks->arg, "interface", name);
}

static void see_rules(const char *interface, void *arg)
{
    const struct net_leaks *leaks = arg;
    int index = pair_index(interface);
    if (index < 0 || !leaks->is_running(leaks->arg, index))
        leaks->leak(leaks->arg, "network-rules", interface);
}

static int check_links(const struct net_leaks *leaks, struct netlink *route, struct error *err)
{
    for (int waited = 0;; waited += LOOK_MS) {
        struct count count = {.leaks = leaks, .tell = waited >= PATIENCE_MS};
        if (link_each(route, see_link, &count, err) < 0)
            return -1;
        if (count.strangers <= READY_MAX || count.tell)
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

static int check_machine(const struct net_leaks *leaks, struct error *err)
{
    char uplink[ROUTER_NAME_SIZE], table[64];
    struct netlink route = NETLINK_INIT, rules = NETLINK_INIT;
    router_uplink_name(leaks->instance, uplink);
    snprintf(table, sizeof(table), "cella_%s", leaks->instance);
    if (nl_open(NETLINK_ROUTE, &route, err) < 0)
        return -1;
    if (link_find(&route, uplink) != 0)
        leaks->leak(leaks->arg, "interface", uplink);
    nl_close(&route);
    if (nl_open(NETLINK_NETFILTER, &rules, err) < 0) /* no nf_tables: no table */
        return 0;
    if (filter_has_table(&rules, table))
        leaks->leak(leaks->arg, "firewall-table", table);
    nl_close(&rules);
    return 0;
}

static int check_router(const struct net_leaks *leaks, int router, struct error *err)
{
    struct netlink route = NETLINK_INIT, rules = NETLINK_INIT;
    struct error missing;
    if (setns(router, CLONE_NEWNET) < 0)
        return error_sys(err, "entering the router");
    if (nl_open(NETLINK_ROUTE, &route, err) < 0)
        return -1;
    int r = check_links(leaks, &route, err);
    nl_close(&route);
    if (r < 0 || nl_open(NETLINK_NETFILTER, &rules, &missing) < 0)
        return r;
    (void)filter_each(&rules, see_rules, (void *)leaks, &missing); /* no table: no rules */
    nl_close(&rules);
    return 0;
}

int net_leaks_find(const struct net_leaks *leaks, struct error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" LAYOUT_ROUTER, leaks->data);
    _cleanup_fd_ int router = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (router < 0 || !router_is_namespace(router))
        return check_machine(leaks, err);
    if (geteuid() != 0)
        return 0; /* it cannot be looked into */
    return check_router(leaks, router, err);
}
