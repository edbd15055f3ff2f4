/* SPDX-License-Identifier: Apache-2.0 */

/* Rules: their text, and what they match. */

#include "network/rule.h"

#include <stdio.h>
#include <string.h>

static int refuse(struct slice text, struct error *err)
{
    return error_prefix(err, "rule \"%.*s\"", (int)(text.len < 80 ? text.len : 80), text.data);
}

/* ---- reading ---- */

/* Where the host ends: at the colon before the ports, if there is one. A colon inside brackets, or
 * one of several without any (a bare IPv6 address), is part of the host. */
static size_t host_end(struct slice text)
{
    const char *bracket = memchr(text.data, ']', text.len);
    size_t from = bracket == NULL ? 0 : (size_t)(bracket - text.data);
    const char *colon = memchr(text.data + from, ':', text.len - from);
    if (colon == NULL)
        return text.len;
    size_t at = (size_t)(colon - text.data);
    if (bracket == NULL && memchr(colon + 1, ':', text.len - at - 1) != NULL)
        return text.len;
    return at;
}

static int parse_protocol(struct slice *ports, enum net_protocol *ret_protocol, struct error *err)
{
    static const struct {
        const char *text;
        enum net_protocol protocol;
    } known[] = {{"tcp", NET_TCP}, {"udp", NET_UDP}};
    const char *slash = memchr(ports->data, '/', ports->len);
    if (slash == NULL)
        return 0;
    size_t head = (size_t)(slash - ports->data);
    const struct slice name = {slash + 1, ports->len - head - 1};
    ports->len = head;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (slice_eq(name, slice_of(known[i].text))) {
            *ret_protocol = known[i].protocol;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT, "behind a port only /tcp or /udp can stand");
}

static int parse_ports(struct slice ports, struct net_rule *rule, struct error *err)
{
    if (parse_protocol(&ports, &rule->protocol, err) < 0)
        return -1;
    rule->ports_given = true;
    if (slice_eq(ports, slice_of("*")))
        return 0;
    const char *dash = ports.len == 0 ? NULL : memchr(ports.data, '-', ports.len);
    size_t head = dash == NULL ? ports.len : (size_t)(dash - ports.data);
    if (net_port_parse((struct slice){ports.data, head}, &rule->low, err) < 0)
        return -1;
    rule->high = rule->low;
    if (dash == NULL)
        return 0;
    if (net_port_parse((struct slice){dash + 1, ports.len - head - 1}, &rule->high, err) < 0)
        return -1;
    if (rule->high < rule->low)
        return error_set(err, ERROR_INVALID_ARGUMENT, "a range of ports goes upwards: %u-%u",
                         (unsigned)rule->high, (unsigned)rule->low);
    return 0;
}

static int parse_address(struct slice host, const struct net_host *parsed, struct net_rule *rule,
                         struct error *err)
{
    char meant[NET_ADDRESS_TEXT];
    struct error ignored;
    rule->kind = NET_RULE_PREFIX;
    if (net_prefix_parse(host, &rule->prefix, &ignored) == 0)
        return 0;
    net_address_text(&parsed->address, meant);
    return error_set(err, ERROR_INVALID_ARGUMENT, "addresses are written plainly: %s", meant);
}

static int parse_host(struct slice host, struct net_rule *rule, struct error *err)
{
    struct net_host parsed;
    bool below = host.len > 2 && host.data[0] == '*' && host.data[1] == '.';
    if (slice_eq(host, slice_of("*"))) {
        rule->kind = NET_RULE_ANY_NAME;
        return 0;
    }
    if (host.len > 0 && memchr(host.data, '/', host.len) != NULL) {
        rule->kind = NET_RULE_PREFIX;
        return net_prefix_parse(host, &rule->prefix, err);
    }
    if (below)
        host = (struct slice){host.data + 2, host.len - 2};
    if (host.len > 0 && memchr(host.data, '*', host.len) != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a star stands alone, or for all names below one: *.example.com");
    if (net_host_parse(host, &parsed, err) < 0)
        return -1;
    if (parsed.kind == NET_HOST_NAME) {
        rule->kind = below ? NET_RULE_BELOW : NET_RULE_NAME;
        memcpy(rule->name, parsed.name, sizeof(rule->name));
        return 0;
    }
    if (below)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "there are no names below an address; for a range write 203.0.113.0/24");
    return parse_address(host, &parsed, rule, err);
}

int net_rule_parse(struct slice text, struct net_rule *ret_rule, struct error *err)
{
    struct net_rule rule = {.low = 1, .high = 65535};
    if (text.data == NULL || text.len == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a rule is empty: write for example "
                         "*.example.com:443 or 203.0.113.0/24");
    if (text.len >= NET_RULE_TEXT || memchr(text.data, '\0', text.len) != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "a rule is too long, or holds a NUL");
    if (memmem(text.data, text.len, "://", 3) != NULL) {
        error_set(err, ERROR_INVALID_ARGUMENT, "a rule is a host, not a URL: example.com:443");
        return refuse(text, err);
    }
    size_t end = host_end(text);
    if (parse_host((struct slice){text.data, end}, &rule, err) < 0)
        return refuse(text, err);
    if (end < text.len &&
        parse_ports((struct slice){text.data + end + 1, text.len - end - 1}, &rule, err) < 0)
        return refuse(text, err);
    *ret_rule = rule;
    return 0;
}

/* ---- writing ---- */

static void ports_text(const struct net_rule *rule, char *out, size_t size)
{
    static const char *const protocols[] = {[NET_TCP] = "/tcp", [NET_UDP] = "/udp"};
    const char *protocol = rule->protocol == NET_ANY_PROTOCOL ? "" : protocols[rule->protocol];
    if (!rule->ports_given)
        out[0] = '\0';
    else if (rule->low == 1 && rule->high == 65535)
        snprintf(out, size, ":*%s", protocol);
    else if (rule->low == rule->high)
        snprintf(out, size, ":%u%s", (unsigned)rule->low, protocol);
    else
        snprintf(out, size, ":%u-%u%s", (unsigned)rule->low, (unsigned)rule->high, protocol);
}

void net_rule_text(const struct net_rule *rule, char out[NET_RULE_TEXT])
{
    char ports[24], host[NET_NAME_MAX + 3], address[NET_PREFIX_TEXT];
    ports_text(rule, ports, sizeof(ports));
    if (rule->kind == NET_RULE_NAME) {
        snprintf(host, sizeof(host), "%s", rule->name);
    } else if (rule->kind == NET_RULE_BELOW) {
        snprintf(host, sizeof(host), "*.%s", rule->name);
    } else if (rule->kind == NET_RULE_ANY_NAME) {
        snprintf(host, sizeof(host), "*");
    } else {
        net_prefix_text(&rule->prefix, address);
        char *slash = strchr(address, '/');
        bool brackets = rule->prefix.address.family == NET_IPV6 && ports[0] != '\0';
        if (slash != NULL)
            *slash = '\0';
        snprintf(host, sizeof(host), "%s%s%s%s%s", brackets ? "[" : "", address,
                 brackets ? "]" : "", slash == NULL ? "" : "/", slash == NULL ? "" : slash + 1);
    }
    snprintf(out, NET_RULE_TEXT, "%s%s", host, ports);
}

/* ---- matching ---- */

bool net_rule_has_name(const struct net_rule *rule, const char *name)
{
    size_t len = strlen(name), tail = strlen(rule->name);
    switch (rule->kind) {
    case NET_RULE_NAME:
        return strcmp(rule->name, name) == 0;
    case NET_RULE_BELOW:
        return len > tail + 1 && name[len - tail - 1] == '.' &&
               strcmp(name + len - tail, rule->name) == 0;
    case NET_RULE_ANY_NAME:
        return true;
    case NET_RULE_PREFIX:
        break;
    }
    return false;
}

bool net_rule_has_address(const struct net_rule *rule, const struct net_address *address)
{
    return rule->kind == NET_RULE_PREFIX && net_prefix_has(&rule->prefix, address);
}

bool net_rule_has_port(const struct net_rule *rule, enum net_protocol protocol, uint16_t port)
{
    return (rule->protocol == NET_ANY_PROTOCOL || rule->protocol == protocol) &&
           port >= rule->low && port <= rule->high;
}

int net_rule_check(const struct net_rule *rule, const struct net_exceptions *exceptions,
                   struct error *err)
{
    char text[NET_RULE_TEXT];
    const struct net_range *range = NULL;
    if (rule->kind != NET_RULE_PREFIX)
        return 0;
    for (size_t i = 0; i < net_range_count && range == NULL; i++)
        if (net_prefix_within(&rule->prefix, &net_ranges[i].prefix))
            range = &net_ranges[i];
    if (range == NULL)
        return 0;
    for (size_t i = 0; range->may_be_opened && exceptions != NULL && i < exceptions->count; i++)
        if (net_prefix_overlap(&rule->prefix, &exceptions->items[i]))
            return 0;
    net_rule_text(rule, text);
    if (!range->may_be_opened)
        return error_set(err, ERROR_NETWORK_REFUSED,
                         "rule \"%.80s\": no sandbox reaches these addresses (%s)", text,
                         range->name);
    return error_set(err, ERROR_NETWORK_REFUSED,
                     "rule \"%.80s\": these addresses (%s) can be allowed only where the operator "
                     "has opened them to sandboxes (cella server --network-allow-private)",
                     text, range->name);
}
