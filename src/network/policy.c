/* SPDX-License-Identifier: Apache-2.0 */

/* Making, comparing and checking policies, and their form as bytes. What they say is verdict.c. */

#include "network/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/names.h"

static const char *const mode_texts[] = {
#define X(name, text) [NET_##name] = text,
    NET_MODES(X)
#undef X
};

const char *net_mode_text(enum net_mode mode)
{
    return mode_texts[mode];
}

int net_mode_parse(struct slice text, enum net_mode *ret_mode, struct error *err)
{
    for (int i = 0; i < NET_MODE_COUNT; i++)
        if (slice_eq(text, slice_of(mode_texts[i]))) {
            *ret_mode = (enum net_mode)i;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "\"%.*s\" is no network mode: there are none, isolated, allowlist and full",
                     (int)(text.len < 40 ? text.len : 40), text.data);
}

/* ---- making ---- */

void net_policy_release(struct net_policy *policy)
{
    free(policy->allow);
    free(policy->deny);
    free(policy->headers);
    *policy = (struct net_policy){0};
}

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_INTERNAL, "no memory for a network policy");
}

static void *copy_of(const void *from, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);
    if (copy != NULL && size > 0)
        memcpy(copy, from, size);
    return copy;
}

int net_policy_copy(const struct net_policy *from, struct net_policy *ret_policy, struct error *err)
{
    struct net_policy copy = *from;
    copy.allow = copy_of(from->allow, from->allow_count * sizeof(*from->allow));
    copy.deny = copy_of(from->deny, from->deny_count * sizeof(*from->deny));
    copy.headers = copy_of(from->headers, from->header_count * sizeof(*from->headers));
    if (copy.allow == NULL || copy.deny == NULL || copy.headers == NULL) {
        net_policy_release(&copy);
        return no_memory(err);
    }
    *ret_policy = copy;
    return 0;
}

/* Rules are compared by their text, which there is one of for each. */
static bool same_rule(const struct net_rule *a, const struct net_rule *b)
{
    char one[NET_RULE_TEXT], other[NET_RULE_TEXT];
    net_rule_text(a, one);
    net_rule_text(b, other);
    return strcmp(one, other) == 0;
}

bool net_policy_same(const struct net_policy *a, const struct net_policy *b)
{
    _cleanup_buf_ struct buf one = BUF_INIT(NET_POLICY_BYTES_MAX),
                             other = BUF_INIT(NET_POLICY_BYTES_MAX);
    net_policy_pack(a, &one);
    net_policy_pack(b, &other);
    return one.len == other.len && memcmp(one.data, other.data, one.len) == 0;
}

int net_policy_add(struct net_policy *policy, enum net_list list, struct slice text,
                   struct error *err)
{
    struct net_rule **rules = list == NET_ALLOW ? &policy->allow : &policy->deny;
    size_t *count = list == NET_ALLOW ? &policy->allow_count : &policy->deny_count;
    struct net_rule rule;
    if (net_rule_parse(text, &rule, err) < 0)
        return -1;
    for (size_t i = 0; i < *count; i++)
        if (same_rule(&(*rules)[i], &rule))
            return 0;
    if (*count == NET_RULES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "a list has at most %d rules", NET_RULES_MAX);
    struct net_rule *more = realloc(*rules, (*count + 1) * sizeof(*more));
    if (more == NULL)
        return no_memory(err);
    more[(*count)++] = rule;
    *rules = more;
    return 0;
}

/* ---- headers ---- */

/* Fields that say where a request ends, where it goes, or what becomes of its connection. */
static const char *const framing[] = {
    "host",    "content-length", "transfer-encoding", "connection", "keep-alive",     "te",
    "trailer", "upgrade",        "proxy-connection",  "expect",     "http2-settings",
};

static int take_header_name(const char *name, char out[NET_HEADER_NAME_MAX + 1], struct error *err)
{
    size_t len = strlen(name);
    if (len == 0 || len > NET_HEADER_NAME_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "a header's name has 1 to %d characters",
                         NET_HEADER_NAME_MAX);
    for (size_t i = 0; i <= len; i++) {
        char lower = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
        if (i < len && !((lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') ||
                         lower == '-' || lower == '_'))
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "a header's name has letters, digits, hyphens and underscores");
        out[i] = lower;
    }
    for (size_t i = 0; i < ARRAY_LEN(framing); i++)
        if (strcmp(out, framing[i]) == 0)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "the header \"%s\" is the connection's own and cannot be added", out);
    return 0;
}

static int take_value(const char *value, char out[NET_HEADER_FORMAT_MAX + 1], struct error *err)
{
    size_t len = strlen(value);
    bool plain =
        len > 0 && len <= NET_HEADER_FORMAT_MAX && value[0] != ' ' && value[len - 1] != ' ';
    for (size_t i = 0; plain && i < len; i++)
        plain = value[i] >= ' ' && value[i] < 0x7f;
    if (!plain)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a header's value is printable ASCII, of 1 to %d characters, without "
                         "spaces around it",
                         NET_HEADER_FORMAT_MAX);
    memcpy(out, value, len + 1);
    return 0;
}

static int take_format(const char *format, char out[NET_HEADER_FORMAT_MAX + 1], struct error *err)
{
    size_t len = strlen(format);
    const char *place = strstr(format, "{}");
    bool plain = len <= NET_HEADER_FORMAT_MAX;
    for (size_t i = 0; plain && i < len; i++)
        plain = format[i] >= ' ' && format[i] < 0x7f;
    if (!plain || place == NULL || strstr(place + 2, "{}") != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a header's format is printable ASCII, of at most %d characters, with {} "
                         "once, where the secret goes: \"Bearer {}\"",
                         NET_HEADER_FORMAT_MAX);
    memcpy(out, format, len + 1);
    return 0;
}

int net_policy_add_header(struct net_policy *policy, struct slice host, const char *header,
                          const char *secret, const char *format, struct error *err)
{
    struct net_header item = {0};
    if (net_rule_parse(host, &item.host, err) < 0)
        return -1;
    if ((item.host.kind != NET_RULE_NAME && item.host.kind != NET_RULE_BELOW) ||
        item.host.ports_given)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a header is for a host name without a port: api.example.com");
    bool literal = strcmp(secret, NET_NO_SECRET) == 0;
    if (!literal && secret_name_check(secret, err) < 0)
        return error_prefix(err, "the name of a secret");
    if (literal && format == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a header needs a secret: the name of one, or a value as its format");
    snprintf(item.secret, sizeof(item.secret), "%s", secret);
    if (take_header_name(header, item.header, err) < 0)
        return -1;
    if ((literal ? take_value(format, item.format, err)
                 : take_format(format == NULL ? "{}" : format, item.format, err)) < 0)
        return -1;
    if (policy->header_count == NET_HEADERS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "a sandbox has at most %d headers",
                         NET_HEADERS_MAX);
    struct net_header *more =
        realloc(policy->headers, (policy->header_count + 1) * sizeof(*policy->headers));
    if (more == NULL)
        return no_memory(err);
    more[policy->header_count++] = item;
    policy->headers = more;
    return 0;
}

/* ---- checking ---- */

/* In the open modes nobody knows the name behind a connection to other ports than the web's: there
 * a name is denied by not telling its address, and so altogether or not at all. */
static bool can_deny(const struct net_rule *rule)
{
    enum { HTTP = 80, TLS = 443, LAST = 65535 };
    if (!net_rule_names(rule) ||
        (rule->low <= 1 && rule->high == LAST && rule->protocol == NET_ANY_PROTOCOL))
        return true;
    return rule->low == rule->high &&
           ((rule->low == HTTP && rule->protocol != NET_UDP) || rule->low == TLS);
}

static int check_denied(const struct net_policy *policy, struct error *err)
{
    char text[NET_RULE_TEXT];
    for (size_t i = 0; policy->mode != NET_ALLOWLIST && i < policy->deny_count; i++) {
        if (can_deny(&policy->deny[i]))
            continue;
        net_rule_text(&policy->deny[i], text);
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "rule \"%.80s\": in mode %s a name is denied at all ports, or at 80 or "
                         "443; for others deny addresses (203.0.113.0/24:22, 0.0.0.0/0:25)",
                         text, mode_texts[policy->mode]);
    }
    return 0;
}

int net_policy_check(const struct net_policy *policy, const struct net_exceptions *exceptions,
                     struct error *err)
{
    if (policy->mode == NET_NONE && (policy->allow_count > 0 || policy->deny_count > 0 ||
                                     policy->header_count > 0 || policy->ipv6))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "without a network (mode none) there is nothing to allow, to deny or to "
                         "add headers to: name a mode (isolated, allowlist, full)");
    for (size_t i = 0; i < policy->allow_count; i++)
        if (net_rule_check(&policy->allow[i], exceptions, err) < 0)
            return -1;
    return check_denied(policy, err);
}

bool net_policy_names_decide(const struct net_policy *policy)
{
    bool decide = policy->mode == NET_ALLOWLIST;
    for (size_t i = 0; i < policy->deny_count && !decide; i++)
        decide = net_rule_names(&policy->deny[i]);
    return decide && policy->mode != NET_NONE;
}

bool net_policy_proxied(const struct net_policy *policy)
{
    return policy->mode != NET_NONE &&
           (policy->header_count > 0 || net_policy_names_decide(policy));
}

/* ---- as bytes ---- */

static void add_item(struct buf *out, const char *key, const char *value)
{
    buf_addf(out, "%s=%s", key, value);
    buf_addc(out, '\0');
}

static void add_number(struct buf *out, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    if (value != 0)
        add_item(out, key, text);
}

static void add_rules(struct buf *out, const char *key, const struct net_rule *rules, size_t count)
{
    char text[NET_RULE_TEXT];
    for (size_t i = 0; i < count; i++) {
        net_rule_text(&rules[i], text);
        add_item(out, key, text);
    }
}

void net_policy_pack(const struct net_policy *policy, struct buf *out)
{
    char host[NET_RULE_TEXT];
    if (policy->mode == NET_NONE)
        return;
    add_item(out, "mode", mode_texts[policy->mode]);
    add_number(out, "ipv6", policy->ipv6);
    add_number(out, "in", policy->rate_in);
    add_number(out, "out", policy->rate_out);
    add_rules(out, "allow", policy->allow, policy->allow_count);
    add_rules(out, "deny", policy->deny, policy->deny_count);
    for (size_t i = 0; i < policy->header_count; i++) {
        const struct net_header *header = &policy->headers[i];
        net_rule_text(&header->host, host);
        buf_addf(out, "%s=%s %s %s %s", header->upgrade ? "header-upgrade" : "header", host,
                 header->header, header->secret, header->format);
        buf_addc(out, '\0');
    }
}

static int take_mode(struct net_policy *policy, const char *value, struct error *err)
{
    return net_mode_parse(slice_of(value), &policy->mode, err);
}

static int take_number(const char *value, uint64_t *ret_number, struct error *err)
{
    char *end;
    if (value[0] < '0' || value[0] > '9')
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.40s\" is no number", value);
    uint64_t number = strtoull(value, &end, 10);
    if (*end != '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.40s\" is no number", value);
    *ret_number = number;
    return 0;
}

static int take_ipv6(struct net_policy *policy, const char *value, struct error *err)
{
    policy->ipv6 = strcmp(value, "1") == 0;
    return 0;
}

static int take_in(struct net_policy *policy, const char *value, struct error *err)
{
    return take_number(value, &policy->rate_in, err);
}

static int take_out(struct net_policy *policy, const char *value, struct error *err)
{
    return take_number(value, &policy->rate_out, err);
}

static int take_allow(struct net_policy *policy, const char *value, struct error *err)
{
    return net_policy_add(policy, NET_ALLOW, slice_of(value), err);
}

static int take_deny(struct net_policy *policy, const char *value, struct error *err)
{
    return net_policy_add(policy, NET_DENY, slice_of(value), err);
}

/* Three words without spaces, and the rest. */
static int take_header(struct net_policy *policy, const char *value, struct error *err)
{
    char words[3][NET_RULE_TEXT];
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strcspn(value, " ");
        if (len >= sizeof(words[i]) || value[len] != ' ')
            return error_set(err, ERROR_INVALID_ARGUMENT, "a header of a policy is malformed");
        memcpy(words[i], value, len);
        words[i][len] = '\0';
        value += len + 1;
    }
    return net_policy_add_header(policy, slice_of(words[0]), words[1], words[2], value, err);
}

static int take_header_upgrade(struct net_policy *policy, const char *value, struct error *err)
{
    if (take_header(policy, value, err) < 0)
        return -1;
    policy->headers[policy->header_count - 1].upgrade = true;
    return 0;
}

static const struct {
    const char *key;
    int (*take)(struct net_policy *policy, const char *value, struct error *err);
} items[] = {
    {"mode", take_mode},     {"ipv6", take_ipv6},
    {"in", take_in},         {"out", take_out},
    {"deny", take_deny},     {"allow", take_allow},
    {"header", take_header}, {"header-upgrade", take_header_upgrade},
};

static int take_item(struct net_policy *policy, const char *item, struct error *err)
{
    const char *eq = strchr(item, '=');
    struct slice key = {item, eq == NULL ? 0 : (size_t)(eq - item)};
    for (size_t i = 0; i < ARRAY_LEN(items); i++)
        if (slice_eq(key, slice_of(items[i].key)))
            return items[i].take(policy, eq + 1, err);
    return error_set(err, ERROR_INVALID_ARGUMENT, "a network policy holds \"%.40s\"", item);
}

int net_policy_unpack(struct slice list, struct net_policy *ret_policy, struct error *err)
{
    _cleanup_(net_policy_release) struct net_policy policy = {0};
    if (!strv_valid(list))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a network policy is cut off");
    strv_each (item, list)
        if (take_item(&policy, item, err) < 0)
            return -1;
    *ret_policy = policy;
    policy = (struct net_policy){0};
    return 0;
}
