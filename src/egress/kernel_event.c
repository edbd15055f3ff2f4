/* SPDX-License-Identifier: Apache-2.0 */

/* Netlink messages: attributes with lengths, some of which hold attributes themselves. */

#include "egress/kernel_event.h"

#include <endian.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>

enum { IPV4_HEADER = 20, IPV6_HEADER = 40, PORTS = 4, FRAGMENT_OFFSET = 0x1fff };

/* ---- attributes ---- */

/* What the attribute of that type holds; {NULL}: there is none. */
static struct slice find(struct slice attributes, unsigned type)
{
    while (attributes.data != NULL && attributes.len >= NLA_HDRLEN) {
        struct nlattr attribute;
        memcpy(&attribute, attributes.data, sizeof(attribute));
        if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > attributes.len)
            break;
        if ((attribute.nla_type & NLA_TYPE_MASK) == type)
            return (struct slice){attributes.data + NLA_HDRLEN,
                                  attribute.nla_len - (size_t)NLA_HDRLEN};
        size_t whole = NLA_ALIGN((size_t)attribute.nla_len);
        if (whole >= attributes.len)
            break;
        attributes.data += whole;
        attributes.len -= whole;
    }
    return (struct slice){0};
}

/* false: it is not there, or has another size. */
static bool copy(struct slice attributes, unsigned type, void *to, size_t len)
{
    struct slice value = find(attributes, type);
    if (value.data == NULL || value.len != len)
        return false;
    memcpy(to, value.data, len);
    return true;
}

/* ---- connections ---- */

static bool take_address(struct slice addresses, unsigned type4, unsigned type6,
                         struct net_address *ret_address)
{
    unsigned char bytes[16];
    if (copy(addresses, type4, bytes, 4))
        *ret_address = net_address_of(NET_IPV4, bytes);
    else if (copy(addresses, type6, bytes, 16))
        *ret_address = net_address_of(NET_IPV6, bytes);
    else
        return false;
    return true;
}

static bool take_tuple(struct slice tuple, struct kernel_event *event)
{
    struct slice addresses = find(tuple, CTA_TUPLE_IP), what = find(tuple, CTA_TUPLE_PROTO);
    uint16_t port;
    if (!take_address(addresses, CTA_IP_V4_SRC, CTA_IP_V6_SRC, &event->from) ||
        !take_address(addresses, CTA_IP_V4_DST, CTA_IP_V6_DST, &event->to) ||
        !copy(what, CTA_PROTO_NUM, &event->protocol, 1))
        return false;
    if (copy(what, CTA_PROTO_SRC_PORT, &port, sizeof(port)))
        event->from_port = ntohs(port);
    if (copy(what, CTA_PROTO_DST_PORT, &port, sizeof(port)))
        event->to_port = ntohs(port);
    return true;
}

static uint64_t bytes_of(struct slice counters)
{
    uint64_t bytes;
    return copy(counters, CTA_COUNTERS_BYTES, &bytes, sizeof(bytes)) ? be64toh(bytes) : 0;
}

static bool is_over(struct slice attributes)
{
    struct slice tcp = find(find(attributes, CTA_PROTOINFO), CTA_PROTOINFO_TCP);
    uint8_t state;
    return copy(tcp, CTA_PROTOINFO_TCP_STATE, &state, 1) &&
           (state == TCP_CONNTRACK_TIME_WAIT || state == TCP_CONNTRACK_CLOSE);
}

static bool take_connection(const struct nlmsghdr *header, struct slice attributes,
                            struct kernel_event *event)
{
    uint32_t status;
    if (!take_tuple(find(attributes, CTA_TUPLE_ORIG), event))
        return false;
    event->answered =
        event->protocol != IPPROTO_TCP || (copy(attributes, CTA_STATUS, &status, sizeof(status)) &&
                                           (ntohl(status) & IPS_ASSURED) != 0);
    if ((header->nlmsg_type & 0xff) == IPCTNL_MSG_CT_DELETE) {
        event->kind = KERNEL_ENDED;
        event->out_bytes = bytes_of(find(attributes, CTA_COUNTERS_ORIG));
        event->in_bytes = bytes_of(find(attributes, CTA_COUNTERS_REPLY));
        return true;
    }
    if ((header->nlmsg_type & 0xff) != IPCTNL_MSG_CT_NEW)
        return false;
    event->kind = header->nlmsg_flags & NLM_F_CREATE ? KERNEL_CONNECTED : KERNEL_CLOSED;
    return event->kind == KERNEL_CONNECTED || is_over(attributes);
}

/* ---- packets ---- */

static void take_ports(struct slice packet, size_t at, struct kernel_event *event)
{
    uint16_t ports[2];
    if ((event->protocol != IPPROTO_TCP && event->protocol != IPPROTO_UDP) ||
        packet.len < at + PORTS)
        return;
    memcpy(ports, packet.data + at, sizeof(ports));
    event->from_port = ntohs(ports[0]);
    event->to_port = ntohs(ports[1]);
}

/* Of later fragments, and behind IPv6's further headers, ports are not looked for. */
static bool take_packet(struct slice packet, struct kernel_event *event)
{
    const unsigned char *bytes = (const unsigned char *)packet.data;
    if (packet.len >= IPV4_HEADER && bytes[0] >> 4 == 4) {
        event->protocol = bytes[9];
        event->from = net_address_of(NET_IPV4, bytes + 12);
        event->to = net_address_of(NET_IPV4, bytes + 16);
        if (((bytes[6] << 8 | bytes[7]) & FRAGMENT_OFFSET) == 0)
            take_ports(packet, (size_t)(bytes[0] & 0xf) * 4, event);
        return true;
    }
    if (packet.len >= IPV6_HEADER && bytes[0] >> 4 == 6) {
        event->protocol = bytes[6];
        event->from = net_address_of(NET_IPV6, bytes + 8);
        event->to = net_address_of(NET_IPV6, bytes + 24);
        take_ports(packet, IPV6_HEADER, event);
        return true;
    }
    return false;
}

static bool take_refusal(const struct nlmsghdr *header, struct slice attributes,
                         struct kernel_event *event)
{
    struct slice prefix = find(attributes, NFULA_PREFIX), packet = find(attributes, NFULA_PAYLOAD);
    event->kind = KERNEL_REFUSED;
    event->limit = prefix.len >= strlen(KERNEL_LIMIT_PREFIX) &&
                   memcmp(prefix.data, KERNEL_LIMIT_PREFIX, strlen(KERNEL_LIMIT_PREFIX)) == 0;
    return (header->nlmsg_type & 0xff) == NFULNL_MSG_PACKET && packet.data != NULL &&
           take_packet(packet, event);
}

/* ---- messages ---- */

static bool take_message(const struct nlmsghdr *header, struct slice payload,
                         struct kernel_event *event)
{
    const size_t own = NLMSG_ALIGN(sizeof(struct nfgenmsg));
    if (payload.len < own)
        return false;
    payload.data += own;
    payload.len -= own;
    switch (header->nlmsg_type >> 8) {
    case NFNL_SUBSYS_CTNETLINK:
        return take_connection(header, payload, event);
    case NFNL_SUBSYS_ULOG:
        return take_refusal(header, payload, event);
    default:
        return false;
    }
}

void kernel_events_read(struct slice bytes,
                        void (*each)(void *ctx, const struct kernel_event *event), void *ctx)
{
    while (bytes.len >= NLMSG_HDRLEN) {
        struct nlmsghdr header;
        struct kernel_event event = {0};
        memcpy(&header, bytes.data, sizeof(header));
        if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > bytes.len)
            return;
        const struct slice payload = {bytes.data + NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN};
        if (take_message(&header, payload, &event))
            each(ctx, &event);
        size_t whole = NLMSG_ALIGN((size_t)header.nlmsg_len);
        if (whole >= bytes.len)
            return;
        bytes.data += whole;
        bytes.len -= whole;
    }
}
