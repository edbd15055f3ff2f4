/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a policy says about a name, an address, a port. In allowlist mode `deny` holds the
 * exceptions and is looked at first; in the modes that are open, `allow` does.
 */

#include <string.h>

#include "network/policy.h"

enum { HTTP_PORT = 80, TLS_PORT = 443, PORTS = 65536, WORD_BITS = 64 };

static const char *const verdict_texts[] = {
#define X(name, text) [NET_##name] = text,
    NET_VERDICTS(X)
#undef X
};

static const char *const verdict_names[] = {
#define X(name, text) [NET_##name] = #name,
    NET_VERDICTS(X)
#undef X
};

const char *net_verdict_text(enum net_verdict verdict)
{
    return verdict_texts[verdict];
}

const char *net_verdict_name(enum net_verdict verdict)
{
    return verdict_names[verdict];
}

/* ---- names ---- */

static bool names_port(const struct net_rule *rules, size_t count, const char *name,
                       enum net_protocol protocol, uint16_t port)
{
    for (size_t i = 0; i < count; i++)
        if (net_rule_has_name(&rules[i], name) && net_rule_has_port(&rules[i], protocol, port))
            return true;
    return false;
}

/* Whether a rule, as one that allows, speaks of a port: without ports it is for the web. */
static bool permits(const struct net_rule *rule, enum net_protocol protocol, uint16_t port)
{
    if (!rule->ports_given)
        return protocol == NET_TCP && (port == HTTP_PORT || port == TLS_PORT);
    return net_rule_has_port(rule, protocol, port);
}

static enum net_verdict listed_name(const struct net_policy *policy, const char *name,
                                    enum net_protocol protocol, uint16_t port)
{
    if (names_port(policy->deny, policy->deny_count, name, protocol, port))
        return NET_REFUSED_DENIED;
    for (size_t i = 0; i < policy->allow_count; i++)
        if (net_rule_has_name(&policy->allow[i], name) &&
            permits(&policy->allow[i], protocol, port))
            return NET_ALLOWED;
    return NET_REFUSED_UNLISTED;
}

enum net_verdict net_policy_name(const struct net_policy *policy, const char *name,
                                 enum net_protocol protocol, uint16_t port)
{
    if (policy->mode == NET_NONE)
        return NET_REFUSED_MODE;
    if (protocol == NET_UDP && port == TLS_PORT && net_policy_proxied(policy))
        return NET_REFUSED_QUIC;
    if (policy->mode == NET_ALLOWLIST)
        return listed_name(policy, name, protocol, port);
    if (!names_port(policy->allow, policy->allow_count, name, protocol, port) &&
        names_port(policy->deny, policy->deny_count, name, protocol, port))
        return NET_REFUSED_DENIED;
    return NET_ALLOWED;
}

static bool all_ports(const struct net_rule *rule)
{
    return rule->protocol == NET_ANY_PROTOCOL && rule->low == 1 && rule->high == PORTS - 1;
}

static bool denied_altogether(const struct net_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->deny_count; i++)
        if (net_rule_has_name(&policy->deny[i], name) && all_ports(&policy->deny[i]))
            return true;
    return false;
}

static bool allowed_somewhere(const struct net_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->allow_count; i++)
        if (net_rule_has_name(&policy->allow[i], name))
            return true;
    return false;
}

enum net_verdict net_policy_lookup(const struct net_policy *policy, const char *name)
{
    if (policy->mode == NET_NONE)
        return NET_REFUSED_MODE;
    bool denied = denied_altogether(policy, name), allowed = allowed_somewhere(policy, name);
    if (policy->mode == NET_ALLOWLIST)
        return denied ? NET_REFUSED_DENIED : allowed ? NET_ALLOWED : NET_REFUSED_UNLISTED;
    return denied && !allowed ? NET_REFUSED_DENIED : NET_ALLOWED;
}

/* ---- addresses ---- */

static bool lists_address(const struct net_rule *rules, size_t count,
                          const struct net_address *address, enum net_protocol protocol,
                          uint16_t port)
{
    for (size_t i = 0; i < count; i++)
        if (net_rule_has_address(&rules[i], address) &&
            net_rule_has_port(&rules[i], protocol, port))
            return true;
    return false;
}

/* What holds whatever the lists say. */
static enum net_verdict address_wall(const struct net_policy *policy,
                                     const struct net_exceptions *exceptions,
                                     const struct net_address *address)
{
    if (policy->mode == NET_NONE)
        return NET_REFUSED_MODE;
    if (net_address_forbidden(address, policy->mode == NET_ISOLATED ? NULL : exceptions))
        return NET_REFUSED_FORBIDDEN;
    if (address->family == NET_IPV6 && !policy->ipv6)
        return NET_REFUSED_IPV6;
    return NET_ALLOWED;
}

enum net_verdict net_policy_address(const struct net_policy *policy,
                                    const struct net_exceptions *exceptions,
                                    const struct net_address *address, enum net_protocol protocol,
                                    uint16_t port)
{
    enum net_verdict wall = address_wall(policy, exceptions, address);
    if (wall != NET_ALLOWED)
        return wall;
    bool allowed = lists_address(policy->allow, policy->allow_count, address, protocol, port);
    bool denied = lists_address(policy->deny, policy->deny_count, address, protocol, port);
    if (policy->mode == NET_ALLOWLIST)
        return denied ? NET_REFUSED_DENIED : allowed ? NET_ALLOWED : NET_REFUSED_UNLISTED;
    if (allowed)
        return NET_ALLOWED;
    if (denied)
        return NET_REFUSED_DENIED;
    return protocol == NET_UDP && port == TLS_PORT && net_policy_proxied(policy) ? NET_REFUSED_QUIC
                                                                                 : NET_ALLOWED;
}

enum net_verdict net_policy_nameless(const struct net_policy *policy,
                                     const struct net_exceptions *exceptions,
                                     const struct net_address *address, enum net_protocol protocol,
                                     uint16_t port)
{
    enum net_verdict verdict = net_policy_address(policy, exceptions, address, protocol, port);
    if (verdict != NET_ALLOWED || !net_policy_names_decide(policy))
        return verdict;
    return lists_address(policy->allow, policy->allow_count, address, protocol, port)
               ? NET_ALLOWED
               : NET_REFUSED_NO_NAME;
}

enum net_verdict net_policy_resolved(const struct net_policy *policy,
                                     const struct net_exceptions *exceptions, const char *name,
                                     const struct net_address *address, enum net_protocol protocol,
                                     uint16_t port)
{
    enum net_verdict wall = address_wall(policy, exceptions, address);
    if (wall == NET_REFUSED_FORBIDDEN)
        return NET_REFUSED_REBINDING;
    if (wall != NET_ALLOWED)
        return wall;
    if (!lists_address(policy->deny, policy->deny_count, address, protocol, port))
        return NET_ALLOWED;
    bool excepted = policy->mode != NET_ALLOWLIST &&
                    (lists_address(policy->allow, policy->allow_count, address, protocol, port) ||
                     names_port(policy->allow, policy->allow_count, name, protocol, port));
    return excepted ? NET_ALLOWED : NET_REFUSED_DENIED;
}

/* ---- ports to admit ---- */

struct port_set {
    uint64_t words[PORTS / WORD_BITS];
};

static void set_ports(struct port_set *set, unsigned low, unsigned high, bool value)
{
    for (unsigned port = low; port <= high; port++) {
        uint64_t bit = UINT64_C(1) << port % WORD_BITS;
        if (value)
            set->words[port / WORD_BITS] |= bit;
        else
            set->words[port / WORD_BITS] &= ~bit;
    }
}

static bool has_port(const struct port_set *set, unsigned port)
{
    return (set->words[port / WORD_BITS] >> port % WORD_BITS & 1) != 0;
}

static bool apply(const struct net_rule *rules, size_t count, const char *name,
                  enum net_protocol protocol, bool value, struct port_set *set)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        bool counts = rules[i].ports_given || !value;
        if (counts && net_rule_has_name(&rules[i], name) &&
            (rules[i].protocol == NET_ANY_PROTOCOL || rules[i].protocol == protocol)) {
            set_ports(set, rules[i].low, rules[i].high, value);
            any = true;
        }
    }
    return any;
}

static size_t take_ranges(const struct port_set *set, enum net_protocol protocol,
                          struct net_admission *ret_admissions, size_t max)
{
    size_t count = 0;
    for (unsigned port = 1; port < PORTS && count < max; port++) {
        if (!has_port(set, port))
            continue;
        unsigned high = port;
        while (high + 1 < PORTS && has_port(set, high + 1))
            high++;
        ret_admissions[count++] = (struct net_admission){protocol, (uint16_t)port, (uint16_t)high};
        port = high;
    }
    return count;
}

size_t net_policy_admissions(const struct net_policy *policy, const char *name,
                             struct net_admission *ret_admissions, size_t max)
{
    static const enum net_protocol protocols[] = {NET_TCP, NET_UDP};
    size_t count = 0;
    if (policy->mode != NET_ALLOWLIST)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        struct port_set set = {0};
        if (!apply(policy->allow, policy->allow_count, name, protocols[i], true, &set))
            continue;
        apply(policy->deny, policy->deny_count, name, protocols[i], false, &set);
        set_ports(&set, TLS_PORT, TLS_PORT, false);
        if (protocols[i] == NET_TCP)
            set_ports(&set, HTTP_PORT, HTTP_PORT, false);
        count += take_ranges(&set, protocols[i], ret_admissions + count, max - count);
    }
    return count;
}

const struct net_header *net_policy_header(const struct net_policy *policy, const char *name,
                                           const struct net_header *after)
{
    size_t from = after == NULL ? 0 : (size_t)(after - policy->headers) + 1;
    for (size_t i = from; i < policy->header_count; i++)
        if (net_rule_has_name(&policy->headers[i].host, name))
            return &policy->headers[i];
    return NULL;
}

bool net_policy_upgrades(const struct net_policy *policy, const char *name)
{
    const struct net_header *header = NULL;
    bool any = false;
    while ((header = net_policy_header(policy, name, header)) != NULL) {
        if (!header->upgrade && strcmp(header->secret, NET_NO_SECRET) != 0)
            return false;
        any = true;
    }
    return any;
}
