/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Of a refused packet its headers are passed on, and several of them at once: whoever is refused a
 * lot shall not wake anybody up each time.
 */

#include "warden/net_events.h"

#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "warden/net_rules.h"

enum {
    RECEIVE_BYTES = 2 << 20,
    PACKET_BYTES = 128,   /* of each that is refused */
    PACKETS_AT_ONCE = 32, /* … or after … */
    HUNDREDTHS = 10,      /* … of a second */
};

/* ---- sockets ---- */

static void begin_setting(struct nl_requests *requests)
{
    const struct nfgenmsg header = {
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NET_REFUSALS_GROUP)};
    nl_begin(requests, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, 0, &header, sizeof(header));
}

static int hear_refusals(struct netlink *netlink, struct error *err)
{
    const struct nfulnl_msg_config_cmd bind = {.command = NFULNL_CFG_CMD_BIND};
    const struct nfulnl_msg_config_mode mode = {.copy_range = htonl(PACKET_BYTES),
                                                .copy_mode = NFULNL_COPY_PACKET};
    _cleanup_(nl_release) struct nl_requests requests = NL_REQUESTS_INIT;
    begin_setting(&requests);
    nl_bytes(&requests, NFULA_CFG_CMD, &bind, sizeof(bind));
    nl_end(&requests);
    begin_setting(&requests);
    nl_bytes(&requests, NFULA_CFG_MODE, &mode, sizeof(mode));
    nl_be32(&requests, NFULA_CFG_QTHRESH, PACKETS_AT_ONCE);
    nl_be32(&requests, NFULA_CFG_TIMEOUT, HUNDREDTHS);
    nl_end(&requests);
    return nl_send(netlink, &requests, err);
}

static int hear_connections(struct netlink *netlink, struct error *err)
{
    static const int groups[] = {NFNLGRP_CONNTRACK_NEW, NFNLGRP_CONNTRACK_UPDATE,
                                 NFNLGRP_CONNTRACK_DESTROY};
    const struct sockaddr_nl any = {.nl_family = AF_NETLINK};
    /* Without a number of its own it would count as the kernel, which is told nothing. */
    if (bind(netlink->fd, (const struct sockaddr *)&any, sizeof(any)) < 0)
        return error_sys(err, "binding");
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        if (setsockopt(netlink->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i],
                       sizeof(groups[i])) < 0)
            return error_sys(err, "subscribing");
    return 0;
}

struct hearing {
    bool refusals;
    struct netlink netlink;
};

static int open_inside(void *arg, struct error *err)
{
    const int room = RECEIVE_BYTES;
    struct hearing *hearing = arg;
    if (nl_open(NETLINK_NETFILTER, &hearing->netlink, err) < 0)
        return -1;
    if (setsockopt(hearing->netlink.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
        return error_sys(err, "room for what happens in the router");
    return hearing->refusals ? hear_refusals(&hearing->netlink, err)
                             : hear_connections(&hearing->netlink, err);
}

int events_open(const struct router *router, bool refusals, int *ret_fd, struct error *err)
{
    struct hearing hearing = {.refusals = refusals, .netlink = NETLINK_INIT};
    if (router_within(router, router->fd, open_inside, &hearing, err) < 0) {
        nl_close(&hearing.netlink);
        err->code = ERROR_UNAVAILABLE;
        return error_prefix(err, "what happens in the router");
    }
    *ret_fd = hearing.netlink.fd;
    return 0;
}

/* ---- counting ---- */

static void add_tuple(struct nl_requests *requests, const struct warden_net_count *request)
{
    const bool ipv6 = request->sandbox.len == 16;
    const uint8_t protocol = (uint8_t)request->protocol;
    const uint16_t from = htons((uint16_t)request->sandbox_port),
                   to = htons((uint16_t)request->port);
    size_t tuple = nl_nest(requests, CTA_TUPLE_ORIG);
    size_t part = nl_nest(requests, CTA_TUPLE_IP);
    nl_bytes(requests, ipv6 ? CTA_IP_V6_SRC : CTA_IP_V4_SRC, request->sandbox.data,
             request->sandbox.len);
    nl_bytes(requests, ipv6 ? CTA_IP_V6_DST : CTA_IP_V4_DST, request->address.data,
             request->address.len);
    nl_nest_end(requests, part);
    part = nl_nest(requests, CTA_TUPLE_PROTO);
    nl_bytes(requests, CTA_PROTO_NUM, &protocol, sizeof(protocol));
    nl_bytes(requests, CTA_PROTO_SRC_PORT, &from, sizeof(from));
    nl_bytes(requests, CTA_PROTO_DST_PORT, &to, sizeof(to));
    nl_nest_end(requests, part);
    nl_nest_end(requests, tuple);
}

static uint64_t count_of(const char *attributes, size_t len, uint16_t direction)
{
    size_t nest_len, value_len;
    uint64_t count;
    const void *nest = nl_find(attributes, len, direction, &nest_len);
    const void *value =
        nest == NULL ? NULL : nl_find(nest, nest_len, CTA_COUNTERS_BYTES, &value_len);
    if (value == NULL || value_len != sizeof(count))
        return 0;
    memcpy(&count, value, sizeof(count));
    return be64toh(count);
}

static void see_connection(uint16_t type, const void *payload, size_t len, void *arg)
{
    const size_t header = NLMSG_ALIGN(sizeof(struct nfgenmsg));
    struct warden_net_counted *counted = arg;
    if (type >> 8 != NFNL_SUBSYS_CTNETLINK || len < header)
        return;
    const char *attributes = (const char *)payload + header;
    counted->out_bytes = count_of(attributes, len - header, CTA_COUNTERS_ORIG);
    counted->in_bytes = count_of(attributes, len - header, CTA_COUNTERS_REPLY);
}

int events_count(struct netlink *rules, const struct warden_net_count *request,
                 struct warden_net_counted *ret_counted, struct error *err)
{
    struct warden_net_counted counted = {0};
    if ((request->sandbox.len != 4 && request->sandbox.len != 16) ||
        request->address.len != request->sandbox.len || request->protocol > UINT8_MAX ||
        request->sandbox_port > UINT16_MAX || request->port > UINT16_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "not a connection");
    const struct nfgenmsg header = {.nfgen_family = request->sandbox.len == 4 ? AF_INET : AF_INET6,
                                    .version = NFNETLINK_V0};
    _cleanup_(nl_release) struct nl_requests requests = NL_REQUESTS_INIT;
    nl_begin(&requests, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET, 0, &header, sizeof(header));
    add_tuple(&requests, request);
    nl_end(&requests);
    if (nl_dump(rules, &requests, see_connection, &counted, err) < 0)
        return error_prefix(err, "counting a connection");
    *ret_counted = counted;
    return 0;
}
