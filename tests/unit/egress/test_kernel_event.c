/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel says of connections and of refused packets, whole and cut. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "egress/kernel_event.h"

static const unsigned char box[] = {10, 201, 0, 7}, web[] = {45, 91, 0, 10};

/* ---- messages as the kernel makes them ---- */

static size_t begin(struct buf *out, uint16_t type, uint16_t flags)
{
    size_t at = out->len;
    const struct nlmsghdr header = {.nlmsg_type = type, .nlmsg_flags = flags};
    const struct nfgenmsg own = {.nfgen_family = AF_INET};
    buf_add(out, (const char *)&header, sizeof(header));
    buf_add(out, (const char *)&own, sizeof(own));
    return at;
}

static void end(struct buf *out, size_t at)
{
    uint32_t len = (uint32_t)(out->len - at);
    memcpy(out->data + at, &len, sizeof(len));
}

static size_t nest(struct buf *out, uint16_t type)
{
    size_t at = out->len;
    const struct nlattr attribute = {.nla_type = (uint16_t)(type | NLA_F_NESTED)};
    buf_add(out, (const char *)&attribute, sizeof(attribute));
    return at;
}

static void nest_end(struct buf *out, size_t at)
{
    uint16_t len = (uint16_t)(out->len - at);
    memcpy(out->data + at, &len, sizeof(len));
}

static void add(struct buf *out, uint16_t type, const void *data, size_t len)
{
    static const char zeros[NLA_ALIGNTO];
    const struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
    buf_add(out, (const char *)&attribute, sizeof(attribute));
    buf_add(out, data, len);
    buf_add(out, zeros, NLA_ALIGN(len) - len);
}

static void add_tuple(struct buf *out, uint8_t protocol)
{
    const uint16_t from = htons(40000), to = htons(5432);
    size_t tuple = nest(out, CTA_TUPLE_ORIG), part = nest(out, CTA_TUPLE_IP);
    add(out, CTA_IP_V4_SRC, box, sizeof(box));
    add(out, CTA_IP_V4_DST, web, sizeof(web));
    nest_end(out, part);
    part = nest(out, CTA_TUPLE_PROTO);
    add(out, CTA_PROTO_NUM, &protocol, 1);
    add(out, CTA_PROTO_SRC_PORT, &from, 2);
    add(out, CTA_PROTO_DST_PORT, &to, 2);
    nest_end(out, part);
    nest_end(out, tuple);
}

static void add_counter(struct buf *out, uint16_t direction, uint64_t bytes)
{
    unsigned char big[8];
    for (int i = 0; i < 8; i++)
        big[i] = (unsigned char)(bytes >> (56 - 8 * i));
    size_t at = nest(out, direction);
    add(out, CTA_COUNTERS_BYTES, big, sizeof(big));
    nest_end(out, at);
}

static void add_state(struct buf *out, uint8_t state)
{
    size_t info = nest(out, CTA_PROTOINFO), tcp = nest(out, CTA_PROTOINFO_TCP);
    add(out, CTA_PROTOINFO_TCP_STATE, &state, 1);
    nest_end(out, tcp);
    nest_end(out, info);
}

static void add_status(struct buf *out, uint32_t status)
{
    uint32_t big = htonl(status);
    add(out, CTA_STATUS, &big, sizeof(big));
}

enum { CONNECTION = NFNL_SUBSYS_CTNETLINK << 8, PACKET = NFNL_SUBSYS_ULOG << 8 };

static void add_refusal(struct buf *out, const char *prefix, const void *packet, size_t len)
{
    size_t at = begin(out, PACKET | NFULNL_MSG_PACKET, 0);
    add(out, NFULA_PREFIX, prefix, strlen(prefix) + 1);
    add(out, NFULA_PAYLOAD, packet, len);
    end(out, at);
}

/* ---- what is made of them ---- */

struct seen {
    size_t count;
    struct kernel_event events[8];
};

static void see(void *ctx, const struct kernel_event *event)
{
    struct seen *seen = ctx;
    assert_true(seen->count < 8);
    seen->events[seen->count++] = *event;
}

static struct seen read_all(const struct buf *bytes)
{
    struct seen seen = {0};
    kernel_events_read((struct slice){bytes->data, bytes->len}, see, &seen);
    return seen;
}

static void assert_way(const struct kernel_event *event)
{
    assert_int_equal(event->from.family, NET_IPV4);
    assert_memory_equal(event->from.bytes, box, 4);
    assert_memory_equal(event->to.bytes, web, 4);
}

static void test_a_connection(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    size_t at = begin(&out, CONNECTION | IPCTNL_MSG_CT_NEW, NLM_F_CREATE | NLM_F_EXCL);
    add_tuple(&out, IPPROTO_TCP);
    end(&out, at);
    static const uint8_t states[] = {TCP_CONNTRACK_ESTABLISHED, TCP_CONNTRACK_FIN_WAIT,
                                     TCP_CONNTRACK_TIME_WAIT};
    for (size_t i = 0; i < sizeof(states); i++) { /* only the last of them is worth telling */
        at = begin(&out, CONNECTION | IPCTNL_MSG_CT_NEW, 0);
        add_tuple(&out, IPPROTO_TCP);
        add_status(&out, IPS_ASSURED | IPS_SEEN_REPLY);
        add_state(&out, states[i]);
        end(&out, at);
    }
    at = begin(&out, CONNECTION | IPCTNL_MSG_CT_DELETE, 0);
    add_tuple(&out, IPPROTO_TCP);
    add_status(&out, IPS_SEEN_REPLY);
    add_counter(&out, CTA_COUNTERS_ORIG, 1000);
    add_counter(&out, CTA_COUNTERS_REPLY, UINT64_C(5) << 32);
    end(&out, at);

    struct seen seen = read_all(&out);
    assert_int_equal(seen.count, 3);
    static const enum kernel_event_kind kinds[] = {KERNEL_CONNECTED, KERNEL_CLOSED, KERNEL_ENDED};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(seen.events[i].kind, kinds[i]);
        assert_way(&seen.events[i]);
        assert_int_equal(seen.events[i].from_port, 40000);
        assert_int_equal(seen.events[i].to_port, 5432);
        assert_int_equal(seen.events[i].protocol, IPPROTO_TCP);
    }
    assert_true(seen.events[1].answered);
    assert_false(seen.events[2].answered); /* it never came to be */
    assert_int_equal(seen.events[2].out_bytes, 1000);
    assert_true(seen.events[2].in_bytes == UINT64_C(5) << 32);
}

/* 20 bytes of IPv4, ports behind them. */
static void make_packet(unsigned char packet[28], uint8_t protocol, unsigned words)
{
    static const unsigned char ports[] = {0x9c, 0x40, 0x00, 0x16};
    memset(packet, 0, 28);
    packet[0] = (unsigned char)(0x40 | words);
    packet[9] = protocol;
    memcpy(packet + 12, box, 4);
    memcpy(packet + 16, web, 4);
    memcpy(packet + words * 4, ports, sizeof(ports));
}

static void test_refusals(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    unsigned char packet[28];
    make_packet(packet, IPPROTO_TCP, 5);
    add_refusal(&out, "deny", packet, sizeof(packet));
    make_packet(packet, IPPROTO_UDP, 6);
    add_refusal(&out, KERNEL_LIMIT_PREFIX, packet, sizeof(packet));
    packet[7] = 9; /* a later fragment: what stands there are no ports */
    add_refusal(&out, "deny", packet, sizeof(packet));
    make_packet(packet, IPPROTO_ICMP, 5);
    add_refusal(&out, "deny", packet, sizeof(packet));
    add_refusal(&out, "deny", packet, 12); /* cut */

    struct seen seen = read_all(&out);
    assert_int_equal(seen.count, 4);
    for (size_t i = 0; i < seen.count; i++) {
        assert_int_equal(seen.events[i].kind, KERNEL_REFUSED);
        assert_way(&seen.events[i]);
        assert_int_equal(seen.events[i].limit, i == 1);
        assert_int_equal(seen.events[i].to_port, i < 2 ? 22 : 0);
    }
    assert_int_equal(seen.events[1].protocol, IPPROTO_UDP);
    assert_int_equal(seen.events[3].protocol, IPPROTO_ICMP);
}

static void test_ipv6(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    unsigned char packet[44] = {0x60};
    packet[6] = IPPROTO_TCP;
    packet[8] = 0xfd;
    packet[24] = 0x2a;
    packet[43] = 53;
    add_refusal(&out, "deny", packet, sizeof(packet));
    struct seen seen = read_all(&out);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.events[0].to.family, NET_IPV6);
    assert_int_equal(seen.events[0].to.bytes[0], 0x2a);
    assert_int_equal(seen.events[0].to_port, 53);
}

/* Whatever it is cut down to: nothing is read behind it (sanitizers see to that), nothing invented.
 */
static void test_cut(void **state)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    size_t at = begin(&out, CONNECTION | IPCTNL_MSG_CT_NEW, NLM_F_CREATE);
    add_tuple(&out, IPPROTO_TCP);
    end(&out, at);
    for (size_t len = 0; len < out.len; len++) {
        struct seen seen = {0};
        kernel_events_read((struct slice){out.data, len}, see, &seen);
        assert_int_equal(seen.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_connection),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
