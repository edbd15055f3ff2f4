/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One line of an allow or deny list:
 *
 *     example.com            that name; with ports 80 and 443 where it allows, all where it denies
 *     *.example.com          every name below it, at any depth, but not example.com itself
 *     *                      every name; no address
 *     example.com:22         one port; :80-90 a range; :* all of them
 *     203.0.113.7:5432/tcp   an address and a port, of one protocol (/tcp or /udp); without: both
 *     10.0.0.0/8             a prefix, all ports
 *     [2001:db8::]/32        IPv6; the brackets are needed where a port follows
 *
 * Names are canonical (host.h). A rule of names never matches an address, whoever has it.
 */

#include "network/host.h"

enum net_rule_kind {
    NET_RULE_NAME,     /* exactly this one */
    NET_RULE_BELOW,    /* those that end in "." and this one */
    NET_RULE_ANY_NAME, /* "*" */
    NET_RULE_PREFIX,
};

struct net_rule {
    enum net_rule_kind kind;
    enum net_protocol protocol;
    bool ports_given;
    uint16_t low, high;          /* 1 and 65535 where none are given */
    struct net_prefix prefix;    /* NET_RULE_PREFIX */
    char name[NET_NAME_MAX + 1]; /* NET_RULE_NAME, NET_RULE_BELOW */
};

enum { NET_RULE_TEXT = NET_NAME_MAX + 32 }; /* with the NUL */

/* INVALID_ARGUMENT quotes the rule and says what is wrong with it. */
int net_rule_parse(struct slice text, struct net_rule *ret_rule, struct error *err);
/* The one way to write it; parsing that gives the same rule. */
void net_rule_text(const struct net_rule *rule, char out[NET_RULE_TEXT]);

static inline bool net_rule_names(const struct net_rule *rule)
{
    return rule->kind != NET_RULE_PREFIX;
}

/* Whether it speaks of this canonical name, or this address; ports apart. */
bool net_rule_has_name(const struct net_rule *rule, const char *name);
bool net_rule_has_address(const struct net_rule *rule, const struct net_address *address);
/* Whether it speaks of this port. A rule of names without ports speaks of all. */
bool net_rule_has_port(const struct net_rule *rule, enum net_protocol protocol, uint16_t port);

/* NETWORK_REFUSED when all it allows is cut off (a private range that the operator has not opened):
 * it would promise what never holds. */
int net_rule_check(const struct net_rule *rule, const struct net_exceptions *exceptions,
                   struct error *err);
