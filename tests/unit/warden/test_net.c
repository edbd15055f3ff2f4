/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>

#include "base/cleanup.h"
#include "network/address.h"
#include "warden/net_rules.h"
#include "warden/netlink.h"

static void ranges_of_addresses(void **state)
{
    static const struct {
        const char *text;
        uint32_t range;
        unsigned bits; /* 0: refused */
    } rows[] = {
        {"10.201.0.0/16", 0x0ac90000, 16},
        {"10.0.0.0/8", 0x0a000000, 8},
        {"192.168.7.0/28", 0xc0a80700, 28},
        {"172.16.0.0/12", 0xac100000, 12},
        {"172.32.0.0/16", 0, 0},
        {"10.201.0.0/29", 0, 0},
        {"10.201.0.0/7", 0, 0},
        {"10.201.0.1/16", 0, 0},
        {"203.0.113.0/24", 0, 0},
        {"10.201.0.0", 0, 0},
        {"10.201.0.0/16x", 0, 0},
        {"10.201.0/16", 0, 0},
        {"fd00::/8", 0, 0},
        {"", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t range = 0;
        unsigned bits = 0;
        struct error err = {0};
        int r = router_parse_range(rows[i].text, &range, &bits, &err);
        assert_int_equal(r, rows[i].bits == 0 ? -1 : 0);
        assert_int_equal(range, rows[i].range);
        assert_int_equal(bits, rows[i].bits);
        assert_true(r == 0 || err.code == ERROR_INVALID_ARGUMENT);
    }
}

static void names_and_addresses_by_index(void **state)
{
    char name[NET_NAME_SIZE];
    const struct router router = {.range = 0x0ac90000, .range_bits = 16, .gateway = 0x0ac90001};
    pair_name(65532, name);
    assert_string_equal(name, "cv65532");
    assert_int_equal(pair_index(name), 65532);
    static const char *const strangers[] = {"cv", "cv-1", "cv1x", "cv 1", "eth0", "cvx", "up0"};
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++)
        assert_int_equal(pair_index(strangers[i]), -1);
    assert_int_equal(pair_address(&router, 0), 0x0ac90002);
    /* The last one is not the broadcast address. */
    assert_int_equal(pair_address(&router, (int)pair_count_max(&router) - 1), 0x0ac9fffe);
}

static void ranges_of_ipv6(void **state)
{
    static const struct {
        const char *text;
        unsigned bits; /* 0: refused */
    } rows[] = {
        {"fd12:3456:789a::/64", 64}, {"fc00::/7", 0},    {"fd00::/8", 8},
        {"fd00::/96", 96},           {"fd00::/97", 0},   {"fd00::1/64", 0},
        {"2a0b:90::/32", 0},         {"fe80::/64", 0},   {"10.201.0.0/16", 0},
        {"fd00::/64x", 0},           {"fd00::", 0},      {"", 0},
        {"fd00:::/64", 0},           {"[fd00::]/64", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct six_address range;
        unsigned bits = 0;
        struct error err = {0};
        int r = six_parse_range(rows[i].text, &range, &bits, &err);
        assert_int_equal(r, rows[i].bits == 0 ? -1 : 0);
        assert_int_equal(bits, rows[i].bits);
        assert_true(r == 0 || err.code == ERROR_INVALID_ARGUMENT);
    }
}

static void ipv6_addresses_by_index(void **state)
{
    char text[SIX_TEXT];
    struct error err;
    struct router router = {.range = 0x0ac90000, .range_bits = 16, .gateway = 0x0ac90001};
    assert_int_equal(
        six_parse_range("fd12:3456:789a::/64", &router.six.range, &router.six.range_bits, &err), 0);
    const int last = (int)pair_count_max(&router) - 1;
    struct six_address address = six_address(&router, 0);
    six_text(&address, text);
    assert_string_equal(text, "fd12:3456:789a::2"); /* the gateway is 1 */
    for (int index = 0; index <= last; index += last) {
        address = six_address(&router, index);
        assert_int_equal(six_index(&router, &address), index);
    }
    address = six_address(&router, last + 1);
    assert_int_equal(six_index(&router, &address), -1);
    address = six_address(&router, -1); /* the gateway */
    assert_int_equal(six_index(&router, &address), -1);
    address = six_address(&router, 5);
    address.bytes[9] = 1; /* in the range, and nobody's */
    assert_int_equal(six_index(&router, &address), -1);
    address.bytes[9] = 0;
    address.bytes[0] = 0x20;
    assert_int_equal(six_index(&router, &address), -1);
}

static int check_rule(struct plan_net_rule rule)
{
    struct error err;
    const struct net_wish wish = {
        .mode = PLAN_NETWORK_ALLOWLIST,
        .rules = {(const char *)&rule, sizeof(rule)},
    };
    return net_wish_check(&wish, &err);
}

static void rules_are_looked_at(void **state)
{
    const struct plan_net_rule good = {.family = 4,
                                       .bits = 8,
                                       .verdict = PLAN_RULE_ALLOW,
                                       .protocol = 6,
                                       .first_port = 80,
                                       .last_port = 90,
                                       .address = {45}};
    struct plan_net_rule bad[8];
    assert_int_equal(check_rule(good), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        bad[i] = good;
    bad[0].family = 5;
    bad[1].bits = 33;
    bad[2].verdict = 2;
    bad[3].protocol = 1;
    bad[4].first_port = 91;
    bad[5].address[1] = 1; /* behind the prefix */
    bad[6].address[15] = 1;
    bad[7].bits = 0;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(check_rule(bad[i]), -1);
    struct plan_net_rule six = {
        .family = 6, .bits = 33, .last_port = 65535, .address = {0x2a, 0x0b, 0, 0x90, 0x80}};
    assert_int_equal(check_rule(six), 0);
    six.bits = 32; /* behind the prefix */
    assert_int_equal(check_rule(six), -1);
    six.bits = 129;
    assert_int_equal(check_rule(six), -1);
}

static void wishes_are_looked_at(void **state)
{
    struct error err;
    static const struct net_wish bad[] = {
        {.mode = PLAN_NETWORK_FULL + 1},
        {.mode = PLAN_NETWORK_FULL, .flags = 4},
        {.mode = PLAN_NETWORK_FULL, .in_bytes = 1023},
        {.mode = PLAN_NETWORK_FULL, .out_bytes = UINT64_MAX},
        {.mode = PLAN_NETWORK_FULL, .rules = {"x", 1}},
    };
    const struct net_wish none = {.mode = PLAN_NETWORK_NONE};
    assert_int_equal(net_wish_check(&none, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(net_wish_check(&bad[i], &err), -1);
}

static void only_addresses_reach_nft(void **state)
{
    assert_true(rules_list_valid(""));
    assert_true(rules_list_valid("10.1.0.0/16,fd00::/8,10.0.0.2#53"));
    assert_false(rules_list_valid("10.1.0.0/16 }"));
    assert_false(rules_list_valid("10.1.0.0/16;flush ruleset"));
    assert_false(rules_list_valid("10.1.0.0/16\n"));
}

static void the_rules_say_what_they_were_told(void **state)
{
    struct buf text = BUF_INIT(NET_RULES_TEXT_MAX);
    struct rules_setting setting = {.gateway = 0x0ac90001,
                                    .range = 0x0ac90000,
                                    .range_bits = 16,
                                    .uplink = "cellauptest",
                                    .uplink_near = 0x647f0003,
                                    .instance = "test",
                                    .opened = "10.1.0.0/16,fd00::/8",
                                    .resolvers = "10.0.0.2#53,fd00::2#5353,10.0.0.3",
                                    .egress = 4711};
    rules_router(&setting, &text);
    assert_false(text.failed);
    assert_non_null(strstr(text.data, "dnat ip to 10.201.0.1:5353"));
    assert_non_null(strstr(text.data, "elements = { 10.1.0.0/16 }"));
    assert_null(strstr(text.data, "fd00"));
    assert_non_null(strstr(text.data, "chain raw_sb6 { drop; }"));
    buf_clear(&text);
    rules_machine(&setting, &text);
    assert_non_null(strstr(text.data, "ip6 saddr != :: drop"));
    buf_clear(&text);
    const struct six six = {.range = {{0xfd, 1}},
                            .range_bits = 64,
                            .gateway = {{0xfd, 1, [15] = 1}},
                            .uplink_near = {{0xfd, 2, [15] = 2}}};
    setting.six = &six;
    rules_router(&setting, &text);
    assert_false(text.failed);
    assert_non_null(strstr(text.data, "dnat ip6 to [fd01::1]:5353"));
    assert_non_null(strstr(text.data, "ip6 saddr fd01::/64 masquerade"));
    assert_non_null(strstr(text.data, "elements = { fd00::/8 }"));
    buf_clear(&text);
    rules_machine(&setting, &text);
    assert_false(text.failed);
    assert_non_null(strstr(text.data, "elements = { 10.0.0.2 . 53, 10.0.0.3 . 53 }"));
    assert_non_null(strstr(text.data, "elements = { fd00::2 . 5353 }"));
    assert_non_null(strstr(text.data, "meta skuid 4711"));
    assert_non_null(strstr(text.data, "ip6 saddr != fd02::2 drop"));
    assert_non_null(strstr(text.data, "ip saddr 100.127.0.3 oifname != \"cellauptest\""));
    buf_release(&text);
}

/* The elements of a set in the text of rules, up to the brace that ends them. */
static size_t elements_of(const char *text, const char *set, char *out, size_t size)
{
    const char *at = strstr(text, set);
    assert_non_null(at);
    at = strstr(at, "elements = { ");
    assert_non_null(at);
    at += strlen("elements = { ");
    size_t len = strcspn(at, "}"), count = 1;
    assert_true(len > 0 && len < size);
    memcpy(out, at, len);
    out[len] = '\0';
    for (const char *c = out; *c != '\0'; c++)
        count += *c == ',';
    return count;
}

static void assert_same_ranges(const char *rules, const char *set, enum net_family family)
{
    char elements[2048];
    size_t count = elements_of(rules, set, elements, sizeof(elements)), ranges = 0;
    for (size_t i = 0; i < net_range_count; i++) {
        char text[NET_PREFIX_TEXT + 1] = " ";
        if (net_ranges[i].prefix.address.family != family)
            continue;
        net_prefix_text(&net_ranges[i].prefix, text + (ranges > 0));
        assert_non_null(strstr(elements, text));
        ranges++;
    }
    assert_int_equal(count, ranges);
}

/* What egress refuses and what the kernel drops is one list. */
static void the_kernel_cuts_off_what_egress_does(void **state)
{
    struct buf text = BUF_INIT(NET_RULES_TEXT_MAX);
    const struct rules_setting setting = {
        .uplink = "cellauptest", .instance = "test", .opened = "", .resolvers = "", .egress = 4711};
    rules_router(&setting, &text);
    assert_same_ranges(text.data, "set bad {", NET_IPV4);
    buf_clear(&text);
    rules_machine(&setting, &text);
    assert_same_ranges(text.data, "set bad {", NET_IPV4);
    assert_same_ranges(text.data, "set bad6 {", NET_IPV6);
    buf_release(&text);
}

static void requests_are_framed_as_the_kernel_wants(void **state)
{
    struct nl_requests requests = NL_REQUESTS_INIT;
    const uint32_t header = 7;
    nl_begin(&requests, 20, NLM_F_CREATE, &header, sizeof(header));
    nl_string(&requests, 3, "eth0");
    size_t nest = nl_nest(&requests, 18);
    nl_be32(&requests, 1, 1);
    nl_nest_end(&requests, nest);
    nl_end(&requests);
    const struct nlmsghdr *message = (const struct nlmsghdr *)requests.bytes.data;
    assert_int_equal(message->nlmsg_len, requests.bytes.len);
    assert_int_equal(message->nlmsg_flags, NLM_F_CREATE | NLM_F_REQUEST | NLM_F_ACK);
    assert_int_equal(requests.count, 1);
    const char *attributes = requests.bytes.data + sizeof(*message) + sizeof(header);
    size_t left = requests.bytes.len - sizeof(*message) - sizeof(header), len;
    assert_string_equal(nl_find(attributes, left, 3, &len), "eth0");
    assert_int_equal(len, 5);
    const void *inner = nl_find(attributes, left, 18, &len);
    assert_non_null(inner);
    assert_memory_equal(nl_find(inner, len, 1, &len), "\0\0\0\1", 4);
    assert_null(nl_find(attributes, left, 9, &len));
    assert_null(nl_find(attributes, 3, 3, &len)); /* cut off */
    assert_null(nl_find("\3\0\0\0", 4, 0, &len)); /* shorter than its own head */
    nl_release(&requests);
}

/* More than fits is an error, and nothing is sent. */
static void requests_that_do_not_fit_are_refused(void **state)
{
    struct netlink nowhere = {.fd = -1};
    struct error err = {0};
    char kilobyte[1024] = {0};
    struct nl_requests requests = NL_REQUESTS_INIT;
    for (int i = 0; i < NL_REQUESTS_MAX / (int)sizeof(kilobyte) + 2; i++) {
        nl_begin(&requests, 20, 0, kilobyte, sizeof(kilobyte));
        nl_end(&requests);
    }
    requests.transaction = true;
    assert_int_equal(nl_send(&nowhere, &requests, &err), -1);
    assert_non_null(strstr(err.message, "a request to the kernel"));
    assert_int_equal(nl_dump(&nowhere, &requests, NULL, NULL, &err), -1);
    nl_release(&requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_of_addresses),
        cmocka_unit_test(names_and_addresses_by_index),
        cmocka_unit_test(ranges_of_ipv6),
        cmocka_unit_test(ipv6_addresses_by_index),
        cmocka_unit_test(rules_are_looked_at),
        cmocka_unit_test(wishes_are_looked_at),
        cmocka_unit_test(only_addresses_reach_nft),
        cmocka_unit_test(the_rules_say_what_they_were_told),
        cmocka_unit_test(the_kernel_cuts_off_what_egress_does),
        cmocka_unit_test(requests_are_framed_as_the_kernel_wants),
        cmocka_unit_test(requests_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
