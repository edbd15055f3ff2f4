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

#define _cleanup_requests_ _cleanup_(nl_release)

enum {
    CHAIN_NAME_SIZE = 20,
    IFNAME_KEY = 16,
    ADMISSION_KEY_MAX = 28, /* generation, IPv6 address, protocol, port */
    REGISTER = NFT_REG32_00,
};

/* ---- transactions ---- */

static void begin(struct nl_requests *requests, uint16_t type, unsigned flags)
{
    const struct nfgenmsg header = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};
    nl_begin(requests, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &header,
             sizeof(header));
}

static void transaction_edge(struct nl_requests *requests, uint16_t type)
{
    const struct nfgenmsg header = {
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    nl_begin(requests, type, NL_SILENT, &header, sizeof(header));
    nl_end(requests);
}

static void transaction_begin(struct nl_requests *requests)
{
    requests->transaction = true;
    transaction_edge(requests, NFNL_MSG_BATCH_BEGIN);
}

static int transaction_commit(struct netlink *rules_socket, struct nl_requests *requests,
                              struct error *err)
{
    transaction_edge(requests, NFNL_MSG_BATCH_END);
    return nl_send(rules_socket, requests, err);
}

/* ---- elements ---- */

static void add_data(struct nl_requests *requests, uint16_t type, const void *value, size_t len)
{
    size_t nest = nl_nest(requests, type);
    nl_bytes(requests, NFTA_DATA_VALUE, value, len);
    nl_nest_end(requests, nest);
}

static void add_verdict(struct nl_requests *requests, uint16_t type, int code, const char *chain)
{
    size_t data = nl_nest(requests, type);
    size_t verdict = nl_nest(requests, NFTA_DATA_VERDICT);
    nl_be32(requests, NFTA_VERDICT_CODE, (uint32_t)code);
    if (chain != NULL)
        nl_string(requests, NFTA_VERDICT_CHAIN, chain);
    nl_nest_end(requests, verdict);
    nl_nest_end(requests, data);
}

struct element {
    const char *set;
    const void *key;
    size_t key_len;
    const void *key_end;  /* of a range of keys */
    const uint32_t *mark; /* of a map, unless … */
    const char *chain;    /* … it jumps */
    uint64_t timeout_ms;  /* 0: none */
};

static void change_element(struct nl_requests *requests, bool add, const struct element *element)
{
    begin(requests, add ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM,
          add ? NLM_F_CREATE | NLM_F_EXCL : 0);
    nl_string(requests, NFTA_SET_ELEM_LIST_TABLE, NET_TABLE);
    nl_string(requests, NFTA_SET_ELEM_LIST_SET, element->set);
    size_t list = nl_nest(requests, NFTA_SET_ELEM_LIST_ELEMENTS);
    size_t item = nl_nest(requests, NFTA_LIST_ELEM);
    add_data(requests, NFTA_SET_ELEM_KEY, element->key, element->key_len);
    if (element->key_end != NULL)
        add_data(requests, NFTA_SET_ELEM_KEY_END, element->key_end, element->key_len);
    if (add && element->mark != NULL)
        add_data(requests, NFTA_SET_ELEM_DATA, element->mark, sizeof(*element->mark));
    if (add && element->chain != NULL)
        add_verdict(requests, NFTA_SET_ELEM_DATA, NFT_JUMP, element->chain);
    if (add && element->timeout_ms != 0)
        nl_be64(requests, NFTA_SET_ELEM_TIMEOUT, element->timeout_ms);
    nl_nest_end(requests, item);
    nl_nest_end(requests, list);
    nl_end(requests);
}

struct source_key {
    char interface[IFNAME_KEY];
    uint32_t address;
};

static void change_source(struct nl_requests *requests, bool add, const struct filter_entry *entry)
{
    struct source_key key = {.address = htonl(entry->address)};
    memcpy(key.interface, entry->interface, strnlen(entry->interface, IFNAME_KEY - 1));
    change_element(
        requests, add,
        &(struct element){.set = "sb", .key = &key, .key_len = sizeof(key), .mark = &entry->mark});
}

struct source6_key {
    char interface[IFNAME_KEY];
    struct six_address address;
};

static void change_source6(struct nl_requests *requests, bool add, const struct filter_entry *entry)
{
    struct source6_key key = {.address = entry->six};
    memcpy(key.interface, entry->interface, strnlen(entry->interface, IFNAME_KEY - 1));
    change_element(
        requests, add,
        &(struct element){.set = "sb6", .key = &key, .key_len = sizeof(key), .mark = &entry->mark});
}

static void change_live(struct nl_requests *requests, bool add, const struct filter_entry *entry)
{
    uint32_t generation = entry->mark & NET_MARK_GENERATION;
    change_element(
        requests, add,
        &(struct element){.set = "live", .key = &generation, .key_len = sizeof(generation)});
}

static void change_jump(struct nl_requests *requests, bool add, const struct filter_entry *entry,
                        const char *chain)
{
    char key[IFNAME_KEY] = "";
    memcpy(key, entry->interface, strnlen(entry->interface, IFNAME_KEY - 1));
    change_element(
        requests, add,
        &(struct element){.set = "own", .key = key, .key_len = sizeof(key), .chain = chain});
}

/* ---- chains ---- */

static void chain_name(const struct filter_entry *entry, char out[CHAIN_NAME_SIZE])
{
    snprintf(out, CHAIN_NAME_SIZE, "%.15s", entry->interface);
}

static void change_chain(struct nl_requests *requests, bool add, const char *chain)
{
    begin(requests, add ? NFT_MSG_NEWCHAIN : NFT_MSG_DELCHAIN, add ? NLM_F_CREATE : 0);
    nl_string(requests, NFTA_CHAIN_TABLE, NET_TABLE);
    nl_string(requests, NFTA_CHAIN_NAME, chain);
    nl_end(requests);
}

static void flush_chain(struct nl_requests *requests, const char *chain)
{
    begin(requests, NFT_MSG_DELRULE, 0);
    nl_string(requests, NFTA_RULE_TABLE, NET_TABLE);
    nl_string(requests, NFTA_RULE_CHAIN, chain);
    nl_end(requests);
}

struct nests {
    size_t item, data;
};

static struct nests expression(struct nl_requests *requests, const char *name)
{
    struct nests nests = {.item = nl_nest(requests, NFTA_LIST_ELEM)};
    nl_string(requests, NFTA_EXPR_NAME, name);
    nests.data = nl_nest(requests, NFTA_EXPR_DATA);
    return nests;
}

static void expression_end(struct nl_requests *requests, struct nests nests)
{
    nl_nest_end(requests, nests.data);
    nl_nest_end(requests, nests.item);
}

static void load_payload(struct nl_requests *requests, uint32_t base, uint32_t offset, uint32_t len)
{
    struct nests nests = expression(requests, "payload");
    nl_be32(requests, NFTA_PAYLOAD_DREG, REGISTER);
    nl_be32(requests, NFTA_PAYLOAD_BASE, base);
    nl_be32(requests, NFTA_PAYLOAD_OFFSET, offset);
    nl_be32(requests, NFTA_PAYLOAD_LEN, len);
    expression_end(requests, nests);
}

static void mask_register(struct nl_requests *requests, const void *mask, const void * xor,
                          uint32_t len)
{
    struct nests nests = expression(requests, "bitwise");
    nl_be32(requests, NFTA_BITWISE_SREG, REGISTER);
    nl_be32(requests, NFTA_BITWISE_DREG, REGISTER);
    nl_be32(requests, NFTA_BITWISE_LEN, len);
    add_data(requests, NFTA_BITWISE_MASK, mask, len);
    add_data(requests, NFTA_BITWISE_XOR, xor, len);
    expression_end(requests, nests);
}

static void compare(struct nl_requests *requests, uint32_t operation, const void *value, size_t len)
{
    struct nests nests = expression(requests, "cmp");
    nl_be32(requests, NFTA_CMP_SREG, REGISTER);
    nl_be32(requests, NFTA_CMP_OP, operation);
    add_data(requests, NFTA_CMP_DATA, value, len);
    expression_end(requests, nests);
}

static void load_meta(struct nl_requests *requests, uint32_t key)
{
    struct nests nests = expression(requests, "meta");
    nl_be32(requests, NFTA_META_DREG, REGISTER);
    nl_be32(requests, NFTA_META_KEY, key);
    expression_end(requests, nests);
}

static void match_family(struct nl_requests *requests, const struct plan_net_rule *rule)
{
    const uint8_t family = rule->family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
    load_meta(requests, NFT_META_NFPROTO);
    compare(requests, NFT_CMP_EQ, &family, sizeof(family));
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
    load_payload(requests, NFT_PAYLOAD_NETWORK_HEADER, four ? IPV4_DESTINATION : IPV6_DESTINATION,
                 size);
    if (rule->bits < 8 * size)
        mask_register(requests, mask, zeros, size);
    compare(requests, NFT_CMP_EQ, rule->address, size);
}

static void match_port(struct nl_requests *requests, const struct plan_net_rule *rule,
                       uint8_t protocol)
{
    enum { DESTINATION_PORT = 2, PORT_SIZE = 2 };
    uint16_t first = htons(rule->first_port), last = htons(rule->last_port);
    load_meta(requests, NFT_META_L4PROTO);
    compare(requests, NFT_CMP_EQ, &protocol, sizeof(protocol));
    if (rule->first_port <= 1 && rule->last_port == UINT16_MAX)
        return;
    load_payload(requests, NFT_PAYLOAD_TRANSPORT_HEADER, DESTINATION_PORT, PORT_SIZE);
    compare(requests, NFT_CMP_GTE, &first, sizeof(first));
    compare(requests, NFT_CMP_LTE, &last, sizeof(last));
}

static void set_mark(struct nl_requests *requests, uint32_t bit)
{
    const uint32_t rest = ~bit;
    load_meta(requests, NFT_META_MARK);
    mask_register(requests, &rest, &bit, sizeof(bit));
    struct nests nests = expression(requests, "meta");
    nl_be32(requests, NFTA_META_KEY, NFT_META_MARK);
    nl_be32(requests, NFTA_META_SREG, REGISTER);
    expression_end(requests, nests);
    nests = expression(requests, "immediate");
    nl_be32(requests, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    add_verdict(requests, NFTA_IMMEDIATE_DATA, NFT_RETURN, NULL);
    expression_end(requests, nests);
}

struct own_chain {
    const char *name;
    bool both; /* packets of both families come here */
};

static void add_rule(struct nl_requests *requests, const struct own_chain *chain,
                     const struct plan_net_rule *rule, uint8_t protocol)
{
    begin(requests, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
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
    transaction_begin(&requests);
    if (old != NULL)
        remove_all(&requests, old);
    if (entry != NULL)
        add_all(&requests, entry, rules);
    if (requests.count == 0)
        return 0;
    if (transaction_commit(rules_socket, &requests, err) < 0)
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
        transaction_begin(&requests);
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
        (void)transaction_commit(rules_socket, &requests, &err);
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
    const struct element element = {
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
        transaction_begin(&requests);
        if (attempt == 1)
            change_element(&requests, false, &element);
        change_element(&requests, true, &element);
        if (transaction_commit(rules_socket, &requests, err) == 0)
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
    begin(&requests, NFT_MSG_GETSETELEM, NLM_F_DUMP | NL_SILENT);
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
    transaction_begin(&requests);
    change_live(&requests, false, &(struct filter_entry){.mark = generation});
    return transaction_commit(rules_socket, &requests, err);
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
    begin(&requests, NFT_MSG_GETTABLE, 0);
    nl_string(&requests, NFTA_TABLE_NAME, table);
    nl_end(&requests);
    return nl_dump(rules_socket, &requests, see_anything, &found, &err) == 0 && found;
}

bool filter_has_set(struct netlink *rules_socket, const char *set)
{
    _cleanup_requests_ struct nl_requests requests = NL_REQUESTS_INIT;
    struct error err;
    bool found = false;
    begin(&requests, NFT_MSG_GETSET, 0);
    nl_string(&requests, NFTA_SET_TABLE, NET_TABLE);
    nl_string(&requests, NFTA_SET_NAME, set);
    nl_end(&requests);
    return nl_dump(rules_socket, &requests, see_anything, &found, &err) == 0 && found;
}
