/* SPDX-License-Identifier: Apache-2.0 */

/* Names rather than magic numbers are rtnetlink(7)'s. */

#include "warden/net_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>

#include "base/cleanup.h"

#define _cleanup_requests_ _cleanup_(nl_release)

/* ---- interfaces ---- */

/* One queue: the kernel would make one per processor that there could be, at each end, and they are
 * of no use without a driver behind. */
static void add_end(struct nl_requests *requests, const struct net_end *end)
{
    nl_u32(requests, IFLA_NUM_TX_QUEUES, 1);
    nl_u32(requests, IFLA_NUM_RX_QUEUES, 1);
    nl_string(requests, IFLA_IFNAME, end->name);
    nl_bytes(requests, IFLA_ADDRESS, end->mac, sizeof(end->mac));
}

static struct ifinfomsg end_header(const struct net_end *end, unsigned up)
{
    unsigned flags = up | (end->arp ? 0 : IFF_NOARP);
    return (struct ifinfomsg){.ifi_index = end->ifindex, .ifi_flags = flags, .ifi_change = flags};
}

int link_make_cable(struct netlink *route, const struct net_cable *cable, struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    struct ifinfomsg near = end_header(&cable->near, IFF_UP), far = end_header(&cable->far, 0);
    nl_begin(&requests, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &near, sizeof(near));
    add_end(&requests, &cable->near);
    size_t info = nl_nest(&requests, IFLA_LINKINFO);
    nl_bytes(&requests, IFLA_INFO_KIND, "veth", 4);
    size_t data = nl_nest(&requests, IFLA_INFO_DATA);
    size_t peer = nl_nest(&requests, VETH_INFO_PEER);
    buf_add(&requests.bytes, &far, sizeof(far));
    add_end(&requests, &cable->far);
    nl_u32(&requests, IFLA_NET_NS_FD, (uint32_t)cable->far_namespace);
    nl_nest_end(&requests, peer);
    nl_nest_end(&requests, data);
    nl_nest_end(&requests, info);
    nl_end(&requests);
    if (nl_send(route, &requests, err) < 0)
        return error_prefix(err, "making the interface %s", cable->near.name);
    return 0;
}

int link_remove(struct netlink *route, const char *name, struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    const struct ifinfomsg header = {0};
    nl_begin(&requests, RTM_DELLINK, 0, &header, sizeof(header));
    nl_string(&requests, IFLA_IFNAME, name);
    nl_end(&requests);
    if (nl_send(route, &requests, err) < 0 && err->sys != ENODEV)
        return error_prefix(err, "removing the interface %s", name);
    return 0;
}

int link_up(struct netlink *route, int ifindex, struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    const struct ifinfomsg header = {
        .ifi_index = ifindex, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    nl_begin(&requests, RTM_NEWLINK, 0, &header, sizeof(header));
    nl_end(&requests);
    if (nl_send(route, &requests, err) < 0)
        return error_prefix(err, "bringing an interface up");
    return 0;
}

struct link_look {
    link_fn fn;
    void *arg;
    struct link_counters *counters;
    int found;
};

static void see_link(uint16_t type, const void *payload, size_t len, void *arg)
{
    struct link_look *look = arg;
    struct ifinfomsg header;
    struct rtnl_link_stats64 stats;
    size_t name_len, stats_len;
    if (type != RTM_NEWLINK || len < sizeof(header))
        return;
    memcpy(&header, payload, sizeof(header));
    const char *attributes = (const char *)payload + NLMSG_ALIGN(sizeof(header));
    len -= NLMSG_ALIGN(sizeof(header));
    look->found = header.ifi_index;
    const char *name = nl_find(attributes, len, IFLA_IFNAME, &name_len);
    if (look->fn != NULL && name != NULL && name_len > 0 && name[name_len - 1] == '\0')
        look->fn(name, header.ifi_index, look->arg);
    const void *counted = nl_find(attributes, len, IFLA_STATS64, &stats_len);
    if (look->counters == NULL || counted == NULL)
        return;
    memset(&stats, 0, sizeof(stats));
    memcpy(&stats, counted, stats_len < sizeof(stats) ? stats_len : sizeof(stats));
    *look->counters = (struct link_counters){.in_bytes = stats.rx_bytes,
                                             .out_bytes = stats.tx_bytes,
                                             .in_packets = stats.rx_packets,
                                             .out_packets = stats.tx_packets};
}

int link_each(struct netlink *route, link_fn fn, void *arg, struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    struct link_look look = {.fn = fn, .arg = arg};
    const struct ifinfomsg header = {0};
    nl_begin(&requests, RTM_GETLINK, NLM_F_DUMP | NL_SILENT, &header, sizeof(header));
    nl_end(&requests);
    return nl_dump(route, &requests, see_link, &look, err);
}

static int look_at(struct netlink *route, int ifindex, const char *name, struct link_look *look,
                   struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    const struct ifinfomsg header = {.ifi_index = ifindex};
    nl_begin(&requests, RTM_GETLINK, 0, &header, sizeof(header));
    if (name != NULL)
        nl_string(&requests, IFLA_IFNAME, name);
    nl_end(&requests);
    return nl_dump(route, &requests, see_link, look, err);
}

int link_count(struct netlink *route, int ifindex, struct link_counters *ret_counters,
               struct error *err)
{
    struct link_counters counters = {0};
    struct link_look look = {.counters = &counters};
    if (look_at(route, ifindex, NULL, &look, err) < 0)
        return -1;
    *ret_counters = counters;
    return 0;
}

int link_find(struct netlink *route, const char *name)
{
    struct error err;
    struct link_look look = {0};
    return look_at(route, 0, name, &look, &err) < 0 ? 0 : look.found;
}

/* ---- addresses and routes ---- */

enum { IPV4_SIZE = 4, IPV6_SIZE = 16 };

/* Of either family. */
struct way {
    uint8_t family;
    uint16_t size; /* of an address */
    int ifindex;
    const void *own, *neighbour, *to, *via; /* network order; NULL: none */
    unsigned own_bits, to_bits;
    const unsigned char *mac;
};

static void add_address(struct nl_requests *requests, const struct way *way)
{
    const struct ifaddrmsg header = {.ifa_family = way->family,
                                     .ifa_prefixlen = (uint8_t)way->own_bits,
                                     .ifa_flags = way->family == AF_INET6 ? IFA_F_NODAD : 0,
                                     .ifa_index = (unsigned)way->ifindex};
    nl_begin(requests, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &header, sizeof(header));
    nl_bytes(requests, IFA_LOCAL, way->own, way->size);
    nl_bytes(requests, IFA_ADDRESS, way->own, way->size);
    nl_end(requests);
}

static void add_neighbour(struct nl_requests *requests, const struct way *way)
{
    const struct ndmsg header = {
        .ndm_family = way->family, .ndm_ifindex = way->ifindex, .ndm_state = NUD_PERMANENT};
    nl_begin(requests, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &header, sizeof(header));
    nl_bytes(requests, NDA_DST, way->neighbour, way->size);
    nl_bytes(requests, NDA_LLADDR, way->mac, NET_MAC_LEN);
    nl_end(requests);
}

static void add_route(struct nl_requests *requests, const struct way *way)
{
    const struct rtmsg header = {.rtm_family = way->family,
                                 .rtm_dst_len = (unsigned char)way->to_bits,
                                 .rtm_table = RT_TABLE_MAIN,
                                 .rtm_protocol = RTPROT_STATIC,
                                 .rtm_scope = way->via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                                 .rtm_type = RTN_UNICAST,
                                 .rtm_flags = way->via ? RTNH_F_ONLINK : 0};
    nl_begin(requests, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &header, sizeof(header));
    if (way->to_bits > 0)
        nl_bytes(requests, RTA_DST, way->to, way->size);
    if (way->via != NULL)
        nl_bytes(requests, RTA_GATEWAY, way->via, way->size);
    nl_u32(requests, RTA_OIF, (uint32_t)way->ifindex);
    nl_end(requests);
}

static int add_way(struct netlink *route, const struct way *way, struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    if (way->own != NULL)
        add_address(&requests, way);
    if (way->neighbour != NULL)
        add_neighbour(&requests, way);
    if (way->to != NULL || way->via != NULL)
        add_route(&requests, way);
    if (nl_send(route, &requests, err) < 0)
        return error_prefix(err, "addresses and routes");
    return 0;
}

int link_address(struct netlink *route, const struct net_way *way, struct error *err)
{
    const uint32_t own = htonl(way->own), neighbour = htonl(way->neighbour), to = htonl(way->to),
                   via = htonl(way->via);
    const struct way same = {.family = AF_INET,
                             .size = IPV4_SIZE,
                             .ifindex = way->ifindex,
                             .own = own != 0 ? &own : NULL,
                             .own_bits = way->own_bits,
                             .neighbour = neighbour != 0 ? &neighbour : NULL,
                             .mac = way->mac,
                             .to = to != 0 ? &to : NULL,
                             .to_bits = way->to_bits,
                             .via = via != 0 ? &via : NULL};
    return add_way(route, &same, err);
}

int link_address6(struct netlink *route, const struct net_way6 *way, struct error *err)
{
    const struct way same = {.family = AF_INET6,
                             .size = IPV6_SIZE,
                             .ifindex = way->ifindex,
                             .own = way->own,
                             .own_bits = way->own_bits,
                             .neighbour = way->neighbour,
                             .mac = way->mac,
                             .to = way->to,
                             .to_bits = way->to_bits,
                             .via = way->via};
    return add_way(route, &same, err);
}

struct route_look {
    route_fn fn;
    void *arg;
    bool unicast;
};

static void see_route(uint16_t type, const void *payload, size_t len, void *arg)
{
    struct route_look *look = arg;
    struct rtmsg header;
    uint32_t ifindex;
    size_t size;
    if (type != RTM_NEWROUTE || len < sizeof(header))
        return;
    memcpy(&header, payload, sizeof(header));
    look->unicast = header.rtm_type == RTN_UNICAST;
    if (look->fn == NULL || header.rtm_protocol != RTPROT_RA)
        return;
    const char *attributes = (const char *)payload + NLMSG_ALIGN(sizeof(header));
    const void *out = nl_find(attributes, len - NLMSG_ALIGN(sizeof(header)), RTA_OIF, &size);
    if (out == NULL || size != sizeof(ifindex))
        return;
    memcpy(&ifindex, out, sizeof(ifindex));
    look->fn((int)ifindex, look->arg);
}

bool link_has_route6(struct netlink *route, const unsigned char to[16])
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    const struct rtmsg header = {.rtm_family = AF_INET6, .rtm_dst_len = 8 * IPV6_SIZE};
    struct route_look look = {0};
    struct error err;
    nl_begin(&requests, RTM_GETROUTE, 0, &header, sizeof(header));
    nl_bytes(&requests, RTA_DST, to, IPV6_SIZE);
    nl_end(&requests);
    return nl_dump(route, &requests, see_route, &look, &err) == 0 && look.unicast;
}

int link_each_learned_route6(struct netlink *route, route_fn fn, void *arg, struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    const struct rtmsg header = {.rtm_family = AF_INET6};
    struct route_look look = {.fn = fn, .arg = arg};
    nl_begin(&requests, RTM_GETROUTE, NLM_F_DUMP | NL_SILENT, &header, sizeof(header));
    nl_end(&requests);
    return nl_dump(route, &requests, see_route, &look, err);
}

struct address_look {
    uint32_t network, mask;
    bool has;
};

static void see_address(uint16_t type, const void *payload, size_t len, void *arg)
{
    struct address_look *look = arg;
    uint32_t address;
    size_t size;
    if (type != RTM_NEWADDR || len < sizeof(struct ifaddrmsg))
        return;
    const char *attributes = (const char *)payload + NLMSG_ALIGN(sizeof(struct ifaddrmsg));
    const void *local =
        nl_find(attributes, len - NLMSG_ALIGN(sizeof(struct ifaddrmsg)), IFA_LOCAL, &size);
    if (local == NULL || size != sizeof(address))
        return;
    memcpy(&address, local, sizeof(address));
    look->has = look->has || (ntohl(address) & look->mask) == look->network;
}

int link_has_address(struct netlink *route, uint32_t network, unsigned bits, bool *ret_has,
                     struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    const struct ifaddrmsg header = {.ifa_family = AF_INET};
    struct address_look look = {.network = network, .mask = ~UINT32_C(0) << (32 - bits)};
    nl_begin(&requests, RTM_GETADDR, NLM_F_DUMP | NL_SILENT, &header, sizeof(header));
    nl_end(&requests);
    if (nl_dump(route, &requests, see_address, &look, err) < 0)
        return -1;
    *ret_has = look.has;
    return 0;
}

/* ---- queues ---- */

enum { BURST_MIN = 16 * 1024, BURST_MAX = 1024 * 1024, BURSTS_PER_SECOND = 20 };

static void remove_queue(struct nl_requests *requests, int ifindex)
{
    const struct tcmsg header = {
        .tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_parent = TC_H_ROOT};
    nl_begin(requests, RTM_DELQDISC, 0, &header, sizeof(header));
    nl_end(requests);
}

/* A token bucket that holds 50 ms of the rate, and a queue of as much again. */
static void add_queue(struct nl_requests *requests, int ifindex, uint64_t rate)
{
    const struct tcmsg header = {.tcm_family = AF_UNSPEC,
                                 .tcm_ifindex = ifindex,
                                 .tcm_handle = 1u << 16,
                                 .tcm_parent = TC_H_ROOT};
    uint64_t burst = rate / BURSTS_PER_SECOND;
    burst = burst < BURST_MIN ? BURST_MIN : burst > BURST_MAX ? BURST_MAX : burst;
    /* The link layer is named, so that the kernel computes what it once had tables for. */
    const struct tc_tbf_qopt options = {
        .rate = {.rate = rate > UINT32_MAX ? UINT32_MAX : (uint32_t)rate,
                 .linklayer = TC_LINKLAYER_ETHERNET},
        .limit = (uint32_t)(2 * burst),
    };
    nl_begin(requests, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &header, sizeof(header));
    nl_string(requests, TCA_KIND, "tbf");
    size_t nest = nl_nest(requests, TCA_OPTIONS);
    nl_bytes(requests, TCA_TBF_PARMS, &options, sizeof(options));
    nl_u32(requests, TCA_TBF_BURST, (uint32_t)burst);
    if (rate > UINT32_MAX)
        nl_bytes(requests, TCA_TBF_RATE64, &rate, sizeof(rate));
    nl_nest_end(requests, nest);
    nl_end(requests);
}

int link_limit(struct netlink *route, int ifindex, uint64_t bytes_per_second, struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    if (bytes_per_second == 0)
        remove_queue(&requests, ifindex);
    else
        add_queue(&requests, ifindex, bytes_per_second);
    if (nl_send(route, &requests, err) == 0)
        return 0;
    if (bytes_per_second == 0 && (err->sys == ENOENT || err->sys == EINVAL))
        return 0; /* there was none */
    return error_prefix(err, "limiting an interface");
}
