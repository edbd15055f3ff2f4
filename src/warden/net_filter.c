/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rules on addresses are a chain per sandbox and not elements of a set: a set of ranges over
 * several fields is copied whole by every change of it, and takes no ranges that overlap. The chain
 * is walked once per connection.
 */

#include "warden/net_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "warden/net_nft.h"

#define _cleanup_requests_ _cleanup_(nl_release)

enum {
    CHAIN_NAME_SIZE = 20,
    IFNAME_KEY = 16,
    ADMISSION_KEY_MAX = 28, /* generation, IPv6 address, protocol, port */
};

/* ---- elements ---- */

struct source_key {
    char interface[IFNAME_KEY];
    uint32_t address;
};

static void change_source(struct nl_requests *requests, bool add, const struct filter_entry *entry)
{
    struct source_key key = {.address = htonl(entry->address)};
    memcpy(key.interface, entry->interface, strnlen(entry->interface, IFNAME_KEY - 1));
    nft_change_element(requests, add,
                       &(struct nft_element){
                           .set = "sb", .key = &key, .key_len = sizeof(key), .mark = &entry->mark});
}

struct source6_key {
    char interface[IFNAME_KEY];
    struct six_address address;
};

static void change_source6(struct nl_requests *requests, bool add, const struct filter_entry *entry)
{
    struct source6_key key = {.address = entry->six};
    memcpy(key.interface, entry->interface, strnlen(entry->interface, IFNAME_KEY - 1));
    nft_change_element(
        requests, add,
        &(struct nft_element){
            .set = "sb6", .key = &key, .key_len = sizeof(key), .mark = &entry->mark});
}

static void change_live(struct nl_requests *requests, bool add, const struct filter_entry *entry)
{
    uint32_t generation = entry->mark & NET_MARK_GENERATION;
    nft_change_element(
        requests, add,
        &(struct nft_element){.set = "live", .key = &generation, .key_len = sizeof(generation)});
}

static void change_jump(struct nl_requests *requests, bool add, const struct filter_entry *entry,
                        const char *chain)
{
    char key[IFNAME_KEY] = "";
    memcpy(key, entry->interface, strnlen(entry->interface, IFNAME_KEY - 1));
    nft_change_element(
        requests, add,
        &(struct nft_element){.set = "own", .key = key, .key_len = sizeof(key), .chain = chain});
}

/* ---- chains ---- */

static void chain_name(const struct filter_entry *entry, char out[CHAIN_NAME_SIZE])
{
    snprintf(out, CHAIN_NAME_SIZE, "%.15s", entry->interface);
}

static void change_chain(struct nl_requests *requests, bool add, const char *chain)
{
    nft_begin(requests, add ? NFT_MSG_NEWCHAIN : NFT_MSG_DELCHAIN, add ? NLM_F_CREATE : 0);
    nl_string(requests, NFTA_CHAIN_TABLE, NET_TABLE);
    nl_string(requests, NFTA_CHAIN_NAME, chain);
    nl_end(requests);
}

static void flush_chain(struct nl_requests *requests, const char *chain)
{
    nft_begin(requests, NFT_MSG_DELRULE, 0);
    nl_string(requests, NFTA_RULE_TABLE, NET_TABLE);
    nl_string(requests, NFTA_RULE_CHAIN, chain);
    nl_end(requests);
}

static void match_family(struct nl_requests *requests, const struct plan_net_rule *rule)
{
    const uint8_t family = rule->family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
    nft_load_meta(requests, NFT_META_NFPROTO);
    nft_compare(requests, NFT_CMP_EQ, &family, sizeof(family));
}

static void match_address(struct nl_requests *requests, const struct plan_net_rule *rule)
{
    enum { IPV4_DESTINATION = 16, IPV4_SIZE = 4, IPV6_DESTINATION = 24 };
    static const unsigned char zeros[SIX_SIZE];
    const bool four = rule->family == 4;
    const uint32_t size = four ? IPV4_SIZE : SIX_SIZE;
    unsigned char mask[SIX_SIZE] = {0};
    if (rule->bits == 0)
        return;
    for (unsigned bit = 0; bit < rule->bits; bit++)
        mask[bit / 8] |= (unsigned char)(0x80 >> bit % 8);
    nft_load_payload(requests, NFT_PAYLOAD_NETWORK_HEADER,
                     four ? IPV4_DESTINATION : IPV6_DESTINATION, size);
    if (rule->bits < 8 * size)
        nft_mask(requests, mask, zeros, size);
    nft_compare(requests, NFT_CMP_EQ, rule->address, size);
}

static void match_port(struct nl_requests *requests, const struct plan_net_rule *rule,
                       uint8_t protocol)
{
    enum { DESTINATION_PORT = 2, PORT_SIZE = 2 };
    uint16_t first = htons(rule->first_port), last = htons(rule->last_port);
    nft_load_meta(requests, NFT_META_L4PROTO);
    nft_compare(requests, NFT_CMP_EQ, &protocol, sizeof(protocol));
    if (rule->first_port <= 1 && rule->last_port == UINT16_MAX)
        return;
    nft_load_payload(requests, NFT_PAYLOAD_TRANSPORT_HEADER, DESTINATION_PORT, PORT_SIZE);
    nft_compare(requests, NFT_CMP_GTE, &first, sizeof(first));
    nft_compare(requests, NFT_CMP_LTE, &last, sizeof(last));
}

static void set_mark(struct nl_requests *requests, uint32_t bit)
{
    const uint32_t rest = ~bit;
    nft_load_meta(requests, NFT_META_MARK);
    nft_mask(requests, &rest, &bit, sizeof(bit));
    nft_store_meta(requests, NFT_META_MARK);
    struct nft_nests nests = nft_expression(requests, "immediate");
    nl_be32(requests, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    nft_verdict(requests, NFTA_IMMEDIATE_DATA, NFT_RETURN, NULL);
    nft_expression_end(requests, nests);
}

struct own_chain {
    const char *name;
    bool both; /* packets of both families come here */
};

static void add_rule(struct nl_requests *requests, const struct own_chain *chain,
                     const struct plan_net_rule *rule, uint8_t protocol)
{
    nft_begin(requests, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    nl_string(requests, NFTA_RULE_TABLE, NET_TABLE);
    nl_string(requests, NFTA_RULE_CHAIN, chain->name);
    size_t list = nl_nest(requests, NFTA_RULE_EXPRESSIONS);
    if (chain->both)
        match_family(requests, rule);
    match_address(requests, rule);
    if (protocol != 0)
        match_port(requests, rule, protocol);
    set_mark(requests, rule->verdict == PLAN_RULE_ALLOW ? NET_MARK_ALLOWED : NET_MARK_DENIED);
    nl_nest_end(requests, list);
    nl_end(requests);
}

/* In the order given: each of them ends the walk where it fits. */
static void add_rules(struct nl_requests *requests, const struct own_chain *chain,
                      struct slice rules)
{
    struct plan_net_rule rule;
    for (size_t at = 0; at + sizeof(rule) <= rules.len; at += sizeof(rule)) {
        memcpy(&rule, rules.data + at, sizeof(rule));
        if (rule.family != 4 && !chain->both)
            continue;
        bool all_ports = rule.first_port <= 1 && rule.last_port == UINT16_MAX;
        if (rule.protocol != 0 || all_ports) {
            add_rule(requests, chain, &rule, rule.protocol);
            continue;
        }
        add_rule(requests, chain, &rule, IPPROTO_TCP);
        add_rule(requests, chain, &rule, IPPROTO_UDP);
    }
}

/* ---- all of a sandbox ---- */

static void add_all(struct nl_requests *requests, const struct filter_entry *entry,
                    struct slice rules)
{
    char chain[CHAIN_NAME_SIZE];
    if (entry->mark == 0)
        return;
    change_source(requests, true, entry);
    if (entry->mark & NET_MARK_IPV6)
        change_source6(requests, true, entry);
    change_live(requests, true, entry);
    if (!entry->ruled)
        return;
    chain_name(entry, chain);
    change_chain(requests, true, chain);
    const struct own_chain own = {.name = chain, .both = (entry->mark & NET_MARK_IPV6) != 0};
    add_rules(requests, &own, rules);
    change_jump(requests, true, entry, chain);
}

static void remove_all(struct nl_requests *requests, const struct filter_entry *entry)
{
    char chain[CHAIN_NAME_SIZE];
    if (entry->mark == 0)
        return;
    change_source(requests, false, entry);
    if (entry->mark & NET_MARK_IPV6)
        change_source6(requests, false, entry);
    change_live(requests, false, entry);
    if (!entry->ruled)
        return;
    chain_name(entry, chain);
    change_jump(requests, false, entry, chain);
    flush_chain(requests, chain);
    change_chain(requests, false, chain);
}

int filter_change(struct netlink *rules_socket, const struct filter_entry *old,
                  const struct filter_entry *entry, struct slice rules, struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    nft_transaction(&requests);
    if (old != NULL)
        remove_all(&requests, old);
    if (entry != NULL)
        add_all(&requests, entry, rules);
    if (requests.count == 0)
        return 0;
    if (nft_commit(rules_socket, &requests, err) < 0)
        return error_prefix(err, "changing the rules of %s",
                            entry != NULL ? entry->interface : old->interface);
    return 0;
}

void filter_purge(struct netlink *rules_socket, const struct filter_entry *entry)
{
    struct error err;
    char chain[CHAIN_NAME_SIZE];
    chain_name(entry, chain);
    for (int part = 0; part < 5; part++) {
        _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
        nft_transaction(&requests);
        if (part == 0)
            change_source(&requests, false, entry);
        else if (part == 4)
            change_source6(&requests, false, entry);
        else if (part == 1)
            change_live(&requests, false, entry);
        else if (part == 2)
            change_jump(&requests, false, entry, chain);
        else {
            flush_chain(&requests, chain);
            change_chain(&requests, false, chain);
        }
        (void)nft_commit(rules_socket, &requests, &err);
    }
}

/* Each part of a key takes whole words. */
struct admission_key {
    unsigned char bytes[ADMISSION_KEY_MAX];
    size_t len;
};

static void add_part(struct admission_key *key, const void *value, size_t len)
{
    memcpy(key->bytes + key->len, value, len);
    key->len += (len + 3) / 4 * 4;
}

static struct admission_key admission_key(const struct admission *admission, uint32_t generation,
                                          const uint16_t *port)
{
    struct admission_key key = {.len = 0};
    add_part(&key, &generation, sizeof(generation));
    add_part(&key, &admission->to, admission->ipv6 ? SIX_SIZE : sizeof(uint32_t));
    add_part(&key, &admission->protocol, sizeof(admission->protocol));
    if (port != NULL) {
        const uint16_t swapped = htons(*port);
        add_part(&key, &swapped, sizeof(swapped));
    }
    return key;
}

enum admission_set { ADMIT_PORT, ADMIT_ALL, ADMIT_RANGE };

/* All ports, one port and a range are in sets of their own: the kernel finds the first two in one
 * step, and most rules are of these kinds. */
int filter_admit(struct netlink *rules_socket, const struct admission *admission, struct error *err)
{
    static const char *const sets[][2] = {[ADMIT_PORT] = {"dyn", "dyn6"},
                                          [ADMIT_ALL] = {"dyn_all", "dyn6_all"},
                                          [ADMIT_RANGE] = {"dyn_range", "dyn6_range"}};
    const bool all = admission->first_port <= 1 && admission->last_port == UINT16_MAX;
    const bool range = admission_is_range(admission);
    uint32_t generation = admission->mark & NET_MARK_GENERATION;
    if (range) /* ranges are compared byte by byte: all numbers are in network order */
        generation = htonl(generation);
    const struct admission_key key =
        admission_key(admission, generation, all ? NULL : &admission->first_port);
    const struct admission_key end =
        admission_key(admission, generation, all ? NULL : &admission->last_port);
    const struct nft_element element = {
        .set = sets[all     ? ADMIT_ALL
                    : range ? ADMIT_RANGE
                            : ADMIT_PORT][admission->ipv6],
        .key = key.bytes,
        .key_len = key.len,
        .key_end = range ? end.bytes : NULL,
        .timeout_ms = (uint64_t)admission->seconds * 1000,
    };
    /* One that is there already keeps its time: it goes first, in the same transaction. */
    for (int attempt = 0; attempt < 2; attempt++) {
        _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
        nft_transaction(&requests);
        if (attempt == 1)
            nft_change_element(&requests, false, &element);
        nft_change_element(&requests, true, &element);
        if (nft_commit(rules_socket, &requests, err) == 0)
            return 0;
        if (err->sys != EEXIST)
            break;
    }
    return error_prefix(err, "admitting an address");
}

/* ---- looking ---- */

struct element_look {
    filter_fn fn;                    /* for interfaces, or … */
    filter_generation_fn generation; /* … for generations */
    void *arg;
};

static void see_element(const struct element_look *look, const char *element, size_t len)
{
    char name[IFNAME_KEY + 1] = "";
    uint32_t generation;
    size_t key_len = 0, value_len = 0;
    const void *key = nl_find(element, len, NFTA_SET_ELEM_KEY, &key_len);
    const void *value = key == NULL ? NULL : nl_find(key, key_len, NFTA_DATA_VALUE, &value_len);
    if (value == NULL)
        return;
    if (look->fn != NULL && value_len >= IFNAME_KEY) {
        memcpy(name, value, IFNAME_KEY);
        look->fn(name, look->arg);
    } else if (look->generation != NULL && value_len == sizeof(generation)) {
        memcpy(&generation, value, sizeof(generation));
        look->generation(generation, look->arg);
    }
}

static void see_elements(uint16_t type, const void *payload, size_t len, void *arg)
{
    const size_t header = NLMSG_ALIGN(sizeof(struct nfgenmsg));
    size_t left;
    if (type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSETELEM) || len < header)
        return;
    const char *list =
        nl_find((const char *)payload + header, len - header, NFTA_SET_ELEM_LIST_ELEMENTS, &left);
    while (list != NULL && left >= NLA_HDRLEN) {
        struct nlattr attribute;
        memcpy(&attribute, list, sizeof(attribute));
        size_t whole = NLA_ALIGN((size_t)attribute.nla_len);
        if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > left)
            return;
        see_element(arg, list + NLA_HDRLEN, attribute.nla_len - (size_t)NLA_HDRLEN);
        left -= whole < left ? whole : left;
        list += whole;
    }
}

static int look_at(struct netlink *rules_socket, const char *set, struct element_look *look,
                   struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    nft_begin(&requests, NFT_MSG_GETSETELEM, NLM_F_DUMP | NL_SILENT);
    nl_string(&requests, NFTA_SET_ELEM_LIST_TABLE, NET_TABLE);
    nl_string(&requests, NFTA_SET_ELEM_LIST_SET, set);
    nl_end(&requests);
    return nl_dump(rules_socket, &requests, see_elements, look, err);
}

int filter_each_generation(struct netlink *rules_socket, filter_generation_fn fn, void *arg,
                           struct error *err)
{
    return look_at(rules_socket, "live", &(struct element_look){.generation = fn, .arg = arg}, err);
}

int filter_forget_generation(struct netlink *rules_socket, uint32_t generation, struct error *err)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    nft_transaction(&requests);
    change_live(&requests, false, &(struct filter_entry){.mark = generation});
    return nft_commit(rules_socket, &requests, err);
}

int filter_each(struct netlink *rules_socket, filter_fn fn, void *arg, struct error *err)
{
    struct element_look look = {.fn = fn, .arg = arg};
    struct error missing;
    if (look_at(rules_socket, "sb", &look, err) < 0)
        return -1;
    (void)look_at(rules_socket, "sb6", &look, &missing); /* not every router has it */
    return 0;
}

static void see_anything(uint16_t type, const void *payload, size_t len, void *arg)
{
    *(bool *)arg = true;
}

bool filter_has_table(struct netlink *rules_socket, const char *table)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    struct error err;
    bool found = false;
    nft_begin(&requests, NFT_MSG_GETTABLE, 0);
    nl_string(&requests, NFTA_TABLE_NAME, table);
    nl_end(&requests);
    return nl_dump(rules_socket, &requests, see_anything, &found, &err) == 0 && found;
}
