/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why a namespace of its own: a thousand interfaces and a few dozen rules in the machine's would be
 * everybody's business. There, one interface and one table of our own are enough.
 *
 * The cable's addresses are a pair out of 100.127.0.0/16, found by the instance's id and by looking
 * who else has it: several servers run on one machine. Sandboxes' own range is seen by nobody
 * outside of the router, so all servers may have the same.
 */

#include "warden/net_router.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/netfilter.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/log.h"
#include "warden/files.h"
#include "warden/net_filter.h"
#include "warden/net_link.h"
#include "warden/net_rules.h"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

enum {
    UPLINK_NETWORK = 100 << 24 | 127 << 16, /* 100.127.0.0/16, in pairs */
    UPLINK_PAIRS = 1 << 15,
    UPLINK_BITS = 31,
    LO = 1,
    LOCK_TRIES = 100,
};

/* ---- settings ---- */

int router_parse_range(const char *text, uint32_t *ret_range, unsigned *ret_bits, struct error *err)
{
    char address[INET_ADDRSTRLEN];
    unsigned bits;
    int end = 0;
    struct in_addr in;
    static const struct {
        uint32_t network;
        unsigned bits;
    } private[] = {{10u << 24, 8}, {172u << 24 | 16 << 16, 12}, {192u << 24 | 168 << 16, 16}};
    if (sscanf(text, "%15[0-9.]/%u%n", address, &bits, &end) != 2 || text[end] != '\0' ||
        inet_pton(AF_INET, address, &in) != 1 || bits < 8 || bits > 28)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.40s\" is not a range for sandboxes' addresses, such as 10.201.0.0/16",
                         text);
    uint32_t range = ntohl(in.s_addr);
    if ((range & (UINT32_MAX >> bits)) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%.40s has bits set behind the prefix", text);
    for (size_t i = 0; i < ARRAY_LEN(private); i++)
        if (bits >= private[i].bits &&
            range >> (32 - private[i].bits) == private[i].network >> (32 - private[i].bits)) {
            *ret_range = range;
            *ret_bits = bits;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "%.40s is not private: sandboxes' addresses come out of 10.0.0.0/8, "
                     "172.16.0.0/12 or 192.168.0.0/16",
                     text);
}

void router_uplink_name(const char *instance, char out[ROUTER_NAME_SIZE])
{
    snprintf(out, ROUTER_NAME_SIZE, "cellaup%.8s", instance);
}

/* ---- the namespace ---- */

static void router_path(const char *data, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/" LAYOUT_ROUTER, data);
}

bool router_is_namespace(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

static int go_home(const struct router *router)
{
    if (setns(router->home, CLONE_NEWNET) == 0)
        return 0;
    /* Whatever it did next would happen in the wrong place. The next warden adopts everything. */
    log_error("the way back to the machine's network is gone: %m");
    abort();
}

static int make_namespace(struct router *router, const char *path, struct error *err)
{
    _cleanup_fd_ int target = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (target < 0)
        return error_sys(err, "making %s", path);
    if (unshare(CLONE_NEWNET) < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "making a network namespace");
    _cleanup_fd_ int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    go_home(router);
    if (fd < 0)
        return error_sys(err, "opening the router's namespace");
    char from[48];
    snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    if (mount(from, path, NULL, MS_BIND, NULL) < 0)
        return error_sys(err, "mounting %s", path);
    router->fd = steal_fd(&fd);
    return 0;
}

int router_mount(struct router *router, const char *data, bool *ret_fresh, struct error *err)
{
    char path[PATH_MAX];
    router_path(data, path);
    router->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (router->home < 0)
        return error_sys(err, "opening the machine's network namespace");
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && router_is_namespace(fd)) {
        router->fd = steal_fd(&fd);
        *ret_fresh = false;
        return 0;
    }
    *ret_fresh = true;
    return make_namespace(router, path, err);
}

int router_within(const struct router *router, int network_namespace,
                  int (*fn)(void *arg, struct error *err), void *arg, struct error *err)
{
    if (setns(network_namespace, CLONE_NEWNET) < 0)
        return error_sys(err, "entering a network namespace");
    int r = fn(arg, err);
    go_home(router);
    return r;
}

static void set_knob(const char *path, const char *value)
{
    struct error err; /* a kernel without IPv6, for one */
    (void)file_write_at(AT_FDCWD, path, value, &err);
}

/* Inside of the router. Interfaces have IPv6 when somebody gives it to them (net_six.c). Half-open
 * and half-closed connections are forgotten soon: the table of connections is everybody's. */
static int open_sockets(void *arg, struct error *err)
{
    static const struct {
        const char *path, *value;
    } knobs[] = {
        {"/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"},
        {"/proc/sys/net/ipv4/ip_forward", "1"},
        {"/proc/sys/net/ipv4/ip_early_demux", "0"}, /* hardly anything is for sockets in here */
        {"/proc/sys/net/ipv4/conf/all/send_redirects", "0"},
        {"/proc/sys/net/ipv4/conf/default/send_redirects", "0"},
        {"/proc/sys/net/ipv4/conf/all/accept_redirects", "0"},
        {"/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_syn_sent", "30"},
        {"/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait", "10"},
        {"/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_fin_wait", "30"},
        {"/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait", "30"},
        {"/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "86400"},
        /* Told of are connections for which a rule says so (net_rules.c), with their bytes. */
        {"/proc/sys/net/netfilter/nf_conntrack_events", "0"},
        {"/proc/sys/net/netfilter/nf_conntrack_acct", "1"},
    };
    struct router *router = arg;
    for (size_t i = 0; i < ARRAY_LEN(knobs); i++)
        set_knob(knobs[i].path, knobs[i].value);
    if (nl_open(NETLINK_ROUTE, &router->route, err) < 0)
        return -1;
    return nl_open(NETLINK_NETFILTER, &router->rules, err);
}

/* ---- the cable ---- */

static unsigned text_hash(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = text; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return hash;
}

/* The first pair that nobody has, beginning where this instance looks first. */
static int find_pair(struct netlink *machine, const char *instance, uint32_t *ret_pair,
                     struct error *err)
{
    unsigned first = text_hash(instance);
    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        uint32_t pair = UPLINK_NETWORK + 2 * ((first + i) % UPLINK_PAIRS);
        bool taken;
        if (link_has_address(machine, pair, UPLINK_BITS, &taken, err) < 0)
            return -1;
        if (!taken) {
            *ret_pair = pair;
            return 0;
        }
    }
    return error_set(err, ERROR_UNAVAILABLE, "no pair of addresses in 100.127.0.0/16 is free");
}

void router_cable_mac(enum router_end end, unsigned char out[NET_MAC_LEN])
{
    const unsigned char mac[NET_MAC_LEN] = {0x02, 0xce, 0x11, 0xa0, 0, (unsigned char)end};
    memcpy(out, mac, sizeof(mac));
}

static int make_cable(struct router *router, struct netlink *machine, const char *instance,
                      uint32_t *ret_pair, struct error *err)
{
    uint32_t pair = 0;
    if (find_pair(machine, instance, &pair, err) < 0)
        return -1;
    struct net_cable cable = {
        .near = {.name = router->uplink, .arp = true},
        .far = {.name = "up0", .arp = true},
        .far_namespace = router->fd,
    };
    router_cable_mac(ROUTER_OUTSIDE, cable.near.mac);
    router_cable_mac(ROUTER_INSIDE, cable.far.mac);
    if (link_make_cable(machine, &cable, err) < 0)
        return -1;
    const struct net_way outside = {
        .ifindex = link_find(machine, router->uplink), .own = pair, .own_bits = UPLINK_BITS};
    const struct net_way inside = {.ifindex = link_find(&router->route, "up0"),
                                   .own = pair + 1,
                                   .own_bits = UPLINK_BITS,
                                   .via = pair};
    if (link_up(&router->route, inside.ifindex, err) < 0 ||
        link_address(machine, &outside, err) < 0 || link_address(&router->route, &inside, err) < 0)
        return -1;
    *ret_pair = pair;
    return 0;
}

/* Which pair a cable of ours has that is there already. */
static int read_pair(struct router *router, const char *instance, uint32_t *ret_pair,
                     struct error *err)
{
    unsigned first = text_hash(instance);
    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        uint32_t pair = UPLINK_NETWORK + 2 * ((first + i) % UPLINK_PAIRS);
        bool ours;
        if (link_has_address(&router->route, pair, UPLINK_BITS, &ours, err) < 0)
            return -1;
        if (ours) {
            *ret_pair = pair;
            return 0;
        }
    }
    return error_set(err, ERROR_UNAVAILABLE, "the router's cable has no address");
}

/* Looking and taking are two steps; the lock keeps another server from coming in between. */
static int lock_machine(int *ret_fd, struct error *err)
{
    if (dir_make_at(AT_FDCWD, "/run/cella", 0755, err) < 0)
        return -1;
    int fd = open("/run/cella", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) < 0) {
        error_sys(err, "locking /run/cella");
        cleanup_fd(&fd);
        return -1;
    }
    *ret_fd = fd;
    return 0;
}

static int connect_router(struct router *router, const char *instance, uint32_t *ret_pair,
                          struct error *err)
{
    struct netlink machine = NETLINK_INIT;
    _cleanup_fd_ int lock = -1;
    if (nl_open(NETLINK_ROUTE, &machine, err) < 0)
        return -1;
    int r = lock_machine(&lock, err);
    if (r == 0 && link_find(&router->route, "up0") != 0 && link_find(&machine, router->uplink) != 0)
        r = read_pair(router, instance, ret_pair, err);
    else if (r == 0 && (r = link_remove(&machine, router->uplink, err)) == 0)
        r = make_cable(router, &machine, instance, ret_pair, err);
    nl_close(&machine);
    return r;
}

/* The machine forwards what comes out of the router only if it forwards at all. */
static void enable_forwarding(const char *uplink)
{
    char value[8] = "";
    struct error err;
    static const char path[] = "/proc/sys/net/ipv4/ip_forward";
    if (file_read_at(AT_FDCWD, path, value, sizeof(value), &err) == 0 && value[0] == '1')
        return;
    if (file_write_at(AT_FDCWD, path, "1", &err) < 0)
        log_warn("IPv4 is not forwarded: sandboxes reach only what the egress process proxies (%s)",
                 err.message);
    else
        log_info("IPv4 is forwarded by this machine from now on (net.ipv4.ip_forward), for %s",
                 uplink);
}

/* ---- all of it ---- */

/* A router that was found has its rules, unless they would be others now: after a crash, a server
 * may be started with other settings, or be another version. An empty table's name tells. With its
 * rules it loses those of sandboxes, which reach nothing until cellad has told them anew. */
static int load_router_rules(struct router *router, const struct rules_setting *setting, bool fresh,
                             struct error *err)
{
    char stamp[32];
    _cleanup_buf_ struct buf rules = BUF_INIT(NET_RULES_TEXT_MAX);
    _cleanup_buf_ struct buf text = BUF_INIT(NET_RULES_TEXT_MAX);
    rules_router(setting, &rules);
    if (buf_check(&rules, "the router's rules", err) < 0)
        return -1;
    snprintf(stamp, sizeof(stamp), NET_TABLE "_%08x", text_hash(rules.data));
    if (!fresh && filter_has_table(&router->rules, stamp))
        return 0;
    if (!fresh)
        log_info("the router gets other rules than it had");
    buf_addf(&text, "flush ruleset\ntable inet %s { }\n", stamp); /* all of it is ours */
    buf_add(&text, rules.data, rules.len);
    return rules_load(router->fd, &text, err);
}

static int load_rules(struct router *router, const struct router_options *options,
                      const char *instance, uint32_t pair, bool fresh, struct error *err)
{
    struct rules_setting setting = {.gateway = router->gateway,
                                    .range = router->range,
                                    .range_bits = router->range_bits,
                                    .six = router->six.on ? &router->six : NULL,
                                    .uplink = router->uplink,
                                    .uplink_near = pair + 1,
                                    .instance = instance,
                                    .opened = options->opened,
                                    .resolvers = options->resolvers,
                                    .egress = options->egress,
                                    .told = true};
    _cleanup_buf_ struct buf text = BUF_INIT(NET_RULES_TEXT_MAX);
    rules_machine(&setting, &text);
    if (rules_load(router->home, &text, err) < 0)
        return -1;
    if (load_router_rules(router, &setting, fresh, err) == 0)
        return 0;
    struct error why = *err;
    setting.told = false; /* a kernel without nflog, or conntrack's events */
    if (load_router_rules(router, &setting, fresh, err) < 0)
        return -1;
    log_warn("what sandboxes reach past the proxies is not written down: %s", why.message);
    return 0;
}

/* Sandboxes that run have their addresses: they cannot get others. */
static int check_range(struct router *router, const struct router_options *options, bool fresh,
                       struct error *err)
{
    bool same = true;
    if (!fresh && link_has_address(&router->route, router->gateway, 32, &same, err) < 0)
        return -1;
    if (same)
        return 0;
    return error_set(err, ERROR_CONFLICT,
                     "sandboxes that run have addresses of another range than %.40s: start with "
                     "the one before, and stop the server before changing it",
                     options->range);
}

int router_open(struct router *router, const struct router_options *options, const char *instance,
                bool fresh, struct error *err)
{
    uint32_t pair = 0;
    if (router_parse_range(options->range, &router->range, &router->range_bits, err) < 0)
        return -1;
    if (!rules_list_valid(options->opened) || !rules_list_valid(options->resolvers))
        return error_set(err, ERROR_INVALID_ARGUMENT, "not a list of addresses");
    router->gateway = router->range + 1;
    router_uplink_name(instance, router->uplink);
    if (router_within(router, router->fd, open_sockets, router, err) < 0)
        return -1;
    const struct net_way gateway = {.ifindex = LO, .own = router->gateway, .own_bits = 32};
    if (check_range(router, options, fresh, err) < 0 || link_up(&router->route, LO, err) < 0 ||
        link_address(&router->route, &gateway, err) < 0 ||
        connect_router(router, instance, &pair, err) < 0)
        return -1;
    six_open(router, options->range6, instance);
    if (load_rules(router, options, instance, pair, fresh, err) < 0)
        return -1;
    enable_forwarding(router->uplink);
    return 0;
}

void router_close(struct router *router)
{
    nl_close(&router->route);
    nl_close(&router->rules);
    cleanup_fd(&router->fd);
    cleanup_fd(&router->home);
    router->fd = router->home = -1;
}

void router_remove(const char *data, const char *instance)
{
    char path[PATH_MAX], uplink[ROUTER_NAME_SIZE];
    struct error err;
    struct netlink machine = NETLINK_INIT;
    router_path(data, path);
    if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno == ENOENT)
        return;
    unlink(path);
    router_uplink_name(instance, uplink);
    if (nl_open(NETLINK_ROUTE, &machine, &err) == 0) {
        if (link_find(&machine, uplink) != 0 && link_remove(&machine, uplink, &err) < 0)
            log_warn("%s", err.message);
        nl_close(&machine);
    }
    _cleanup_fd_ int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    _cleanup_buf_ struct buf text = BUF_INIT(NET_RULES_TEXT_MAX);
    rules_machine_remove(instance, &text);
    if (home >= 0 && rules_load(home, &text, &err) < 0)
        log_warn("%s", err.message);
}
