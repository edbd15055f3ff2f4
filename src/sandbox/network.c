/* SPDX-License-Identifier: Apache-2.0 */

/* Policies: from requests and levels to what is recorded, and from there to the kernel. */

#include "sandbox/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "sandbox/state.h"

enum { HEADER_WORDS = 5 };

/* ---- a sandbox's ---- */

static struct plan_net_rule kernel_rule(const struct net_rule *rule, uint8_t verdict)
{
    struct plan_net_rule out = {
        .family = (uint8_t)rule->prefix.address.family,
        .bits = (uint8_t)rule->prefix.bits,
        .verdict = verdict,
        .protocol = (uint8_t)rule->protocol,
        .first_port = rule->ports_given ? rule->low : 0,
        .last_port = rule->high,
    };
    memcpy(out.address, rule->prefix.address.bytes, sizeof(out.address));
    return out;
}

static size_t add_rules(struct plan_net_rule *out, size_t count, const struct net_rule *rules,
                        size_t rule_count, uint8_t verdict)
{
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].kind == NET_RULE_PREFIX)
            out[count++] = kernel_rule(&rules[i], verdict);
    return count;
}

/* The list of exceptions comes first: the first rule that fits decides. */
static int make_rules(struct sandbox_network *network, const struct net_policy *policy,
                      struct error *err)
{
    struct plan_net_rule *rules =
        calloc(policy->allow_count + policy->deny_count + 1, sizeof(*rules));
    size_t count = 0;
    if (rules == NULL)
        return error_sys(err, "allocating a network policy");
    if (policy->mode != NET_ALLOWLIST)
        count = add_rules(rules, count, policy->allow, policy->allow_count, PLAN_RULE_ALLOW);
    count = add_rules(rules, count, policy->deny, policy->deny_count, PLAN_RULE_DENY);
    if (policy->mode == NET_ALLOWLIST)
        count = add_rules(rules, count, policy->allow, policy->allow_count, PLAN_RULE_ALLOW);
    network->rules = rules;
    network->rule_count = count;
    return 0;
}

int sandbox_network_load(struct sandbox *sb, struct slice packed, struct error *err)
{
    _cleanup_(net_policy_release) struct net_policy policy = {0};
    struct sandbox_network network = {0};
    if (packed.len > 0) {
        if (net_policy_unpack(packed, &policy, err) < 0 || make_rules(&network, &policy, err) < 0)
            return -1;
        network.packed = malloc(packed.len);
        if (network.packed == NULL) {
            free(network.rules);
            return error_sys(err, "allocating a network policy");
        }
        memcpy(network.packed, packed.data, packed.len);
        network.packed_len = packed.len;
    }
    network.mode = policy.mode;
    network.proxied = net_policy_proxied(&policy);
    network.has_headers = policy.header_count > 0;
    network.ipv6 = policy.ipv6;
    memcpy(network.address, sb->network.address, sizeof(network.address));
    memcpy(network.address6, sb->network.address6, sizeof(network.address6));
    sandbox_network_release(sb);
    sb->network = network;
    return 0;
}

void sandbox_network_release(struct sandbox *sb)
{
    free(sb->network.packed);
    free(sb->network.rules);
    sb->network = (struct sandbox_network){0};
}

void sandbox_network_at(struct sandbox *sb, const char *address, const char *address6)
{
    snprintf(sb->network.address, sizeof(sb->network.address), "%s",
             address == NULL ? "" : address);
    snprintf(sb->network.address6, sizeof(sb->network.address6), "%s",
             address6 == NULL ? "" : address6);
}

_Static_assert((int)NET_NONE == PLAN_NETWORK_NONE && (int)NET_ISOLATED == PLAN_NETWORK_ISOLATED &&
                   (int)NET_ALLOWLIST == PLAN_NETWORK_ALLOWLIST &&
                   (int)NET_FULL == PLAN_NETWORK_FULL,
               "modes have the same numbers everywhere");

void sandbox_network_plan(const struct sandbox *sb, struct plan *plan)
{
    const struct sandbox_network *network = &sb->network;
    if (network->mode == NET_NONE)
        return;
    plan->network = network->mode;
    plan->network_flags =
        (network->proxied ? PLAN_NETWORK_PROXIED : 0) | (network->ipv6 ? PLAN_NETWORK_IPV6 : 0);
    plan->network_in_bytes = sb->limits.network_in;
    plan->network_out_bytes = sb->limits.network_out;
    plan->network_rules =
        (struct slice){(const char *)network->rules, network->rule_count * sizeof(*network->rules)};
}

int sandbox_network_set(struct sandbox *sb, struct error *err)
{
    struct provider *p = sb->owner->provider;
    struct plan plan = {0};
    sandbox_network_plan(sb, &plan);
    const struct warden_net_set set = {
        .id = sb->id,
        .network = plan.network,
        .network_flags = plan.network_flags,
        .network_in_bytes = plan.network_in_bytes,
        .network_out_bytes = plan.network_out_bytes,
        .network_rules = plan.network_rules,
    };
    return p->ops->net_set(p, &set, err);
}

int sandbox_network_renew(struct sandbox *sb, struct error *err)
{
    struct error later; /* one that is not there is told everything when it comes */
    if (sandbox_network_set(sb, err) < 0)
        return -1;
    (void)egress_tell(sb, &later);
    return 0;
}

int sandbox_network_apply(struct sandbox *sb, struct error *err)
{
    if (sb->network.address[0] == '\0')
        return 0;
    /* Both are told whatever the other one says: what is taken away is taken away. */
    struct error refusal;
    int told = sandbox_with_patience(sb, egress_tell, &refusal);
    if (sandbox_with_patience(sb, sandbox_network_set, err) < 0)
        return -1;
    if (told < 0)
        *err = refusal;
    return told;
}

void sandbox_network_started(struct sandbox *sb)
{
    struct error err;
    bool told = sb->network.told != 0 && sb->network.told == sb->owner->networks.connection;
    if (!told && sb->network.address[0] != '\0' && egress_tell(sb, &err) < 0)
        log_warn("sandbox %s: its network: %s", sb->id, err.message);
    sb->network.told = 0;
}

/* Whether somebody else has been given its address meanwhile. */
static bool has_heir(const struct sandbox *sb)
{
    for (const struct sandbox *other = sb->owner->ids; other != NULL; other = other->by_id.next)
        if (other != sb && other->up && strcmp(other->network.address, sb->network.address) == 0)
            return true;
    return false;
}

void sandbox_network_stopped(struct sandbox *sb)
{
    struct error err;
    if (sb->network.address[0] == '\0')
        return;
    if (!has_heir(sb) && egress_tell(sb, &err) < 0)
        log_warn("sandbox %s: its network: %s", sb->id, err.message);
    sandbox_network_at(sb, NULL, NULL);
}

void networks_look(struct sandboxes *s)
{
    struct warden_about about;
    struct error err;
    struct networks *n = &s->networks;
    if (s->provider->ops->about(s->provider, &about, &err) < 0) {
        log_error("asking about networks: %s", err.message);
        return;
    }
    n->available = about.gateway != NULL;
    snprintf(n->reason, sizeof(n->reason), "%s",
             about.network != NULL ? about.network : "the warden knows none");
}

/* ---- what a request comes to ---- */

static int replace_list(struct net_policy *policy, enum net_list list, struct slice texts,
                        const char *what, struct error *err)
{
    struct net_rule **rules = list == NET_ALLOW ? &policy->allow : &policy->deny;
    free(steal_ptr(*rules));
    *(list == NET_ALLOW ? &policy->allow_count : &policy->deny_count) = 0;
    strv_each (text, texts)
        if (net_policy_add(policy, list, slice_of(text), err) < 0)
            return error_prefix(err, "%s", what);
    return 0;
}

static int replace_headers(struct net_policy *policy, struct slice texts, struct error *err)
{
    const char *words[HEADER_WORDS];
    size_t count = 0;
    free(steal_ptr(policy->headers));
    policy->header_count = 0;
    strv_each (text, texts) {
        words[count++] = text;
        if (count < HEADER_WORDS)
            continue;
        count = 0;
        if (net_policy_add_header(policy, slice_of(words[0]), words[1], words[2],
                                  words[3][0] == '\0' ? NULL : words[3], err) < 0)
            return error_prefix(err, "spec.network.headers");
        policy->headers[policy->header_count - 1].upgrade = words[4][0] != '\0';
    }
    return 0;
}

/* Who names hosts and no mode wants these hosts and no others. */
static void choose_mode(const struct network_request *request, bool hosts,
                        struct net_policy *policy)
{
    if (request->given & NETWORK_MODE)
        policy->mode = request->mode;
    else if (hosts && policy->allow_count > 0)
        policy->mode = NET_ALLOWLIST;
    else if (policy->mode == NET_NONE && policy->allow_count > 0)
        policy->mode = NET_ALLOWLIST;
    else if (policy->mode == NET_NONE && policy->deny_count > 0)
        policy->mode = NET_ISOLATED;
}

/* Without a network there are no lists, either; those that were sent with it are an error. */
static void drop_lists(const struct network_request *request, struct net_policy *policy)
{
    if (!(request->given & NETWORK_ALLOW))
        replace_list(policy, NET_ALLOW, (struct slice){0}, "", NULL);
    if (!(request->given & NETWORK_DENY))
        replace_list(policy, NET_DENY, (struct slice){0}, "", NULL);
    if (!(request->given & NETWORK_HEADERS))
        replace_headers(policy, (struct slice){0}, NULL);
    if (!(request->given & NETWORK_IPV6))
        policy->ipv6 = false;
}

static int take_request(const struct network_request *request, const struct slice *hosts,
                        struct net_policy *policy, struct error *err)
{
    if (hosts != NULL && (request->given & NETWORK_ALLOW) && !slice_eq(*hosts, request->allow))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.security.allowed_hosts and spec.network.allow are the same list: "
                         "name one of them");
    if (hosts != NULL &&
        replace_list(policy, NET_ALLOW, *hosts, "spec.security.allowed_hosts", err) < 0)
        return -1;
    if ((request->given & NETWORK_ALLOW) &&
        replace_list(policy, NET_ALLOW, request->allow, "spec.network.allow", err) < 0)
        return -1;
    if ((request->given & NETWORK_DENY) &&
        replace_list(policy, NET_DENY, request->deny, "spec.network.deny", err) < 0)
        return -1;
    if ((request->given & NETWORK_HEADERS) && replace_headers(policy, request->headers, err) < 0)
        return -1;
    if (request->given & NETWORK_IPV6)
        policy->ipv6 = request->ipv6;
    choose_mode(request, hosts != NULL, policy);
    if (policy->mode == NET_NONE)
        drop_lists(request, policy);
    return 0;
}

/* How much a mode lets through. */
static int width(enum net_mode mode)
{
    static const int widths[NET_MODE_COUNT] = {
        [NET_NONE] = 0, [NET_ALLOWLIST] = 1, [NET_ISOLATED] = 2, [NET_FULL] = 3};
    return widths[mode];
}

static int check_level(const struct trust_options *options, const struct net_policy *policy,
                       bool may_loosen, struct error *err)
{
    if (may_loosen || width(policy->mode) <= width(options->network_most))
        return 0;
    return error_set(err, ERROR_FORBIDDEN,
                     "spec.network.mode: \"%s\" is looser than the trust level \"%s\" has it "
                     "(\"%s\"), which takes a key with the scope admin",
                     net_mode_text(policy->mode), trust_level_text(options->level),
                     net_mode_text(options->network_most));
}

static int check_rule_count(const struct net_policy *policy, struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < policy->allow_count; i++)
        count += policy->allow[i].kind == NET_RULE_PREFIX;
    for (size_t i = 0; i < policy->deny_count; i++)
        count += policy->deny[i].kind == NET_RULE_PREFIX;
    if (count <= PLAN_NET_RULES_MAX)
        return 0;
    return error_set(err, ERROR_LIMIT_EXCEEDED,
                     "spec.network: at most %d rules of addresses in both lists together",
                     PLAN_NET_RULES_MAX);
}

const char *sandboxes_network_reason(struct sandboxes *s)
{
    return s->networks.available ? NULL : s->networks.reason;
}

/* Asked anew each time: a machine's routes come and go. */
static int check_ipv6(struct sandboxes *s, struct error *err)
{
    struct provider *p = s->provider;
    struct warden_machine machine;
    struct arena *arena = arena_new();
    int r = p->ops->machine(p, arena, &machine, err);
    if (r == 0 && machine.ipv6 != NULL)
        r = error_set(err, ERROR_NETWORK_UNAVAILABLE,
                      "spec.network.ipv6: sandboxes have IPv4 only here: %s", machine.ipv6);
    arena_free(arena);
    return r;
}

static int check_policy(struct sandboxes *s, const struct net_policy *policy,
                        const struct trust_options *options, bool may_loosen, struct error *err)
{
    if (net_policy_check(policy, &s->networks.exceptions, err) < 0)
        return error_prefix(err, "spec.network");
    if (check_rule_count(policy, err) < 0 || check_level(options, policy, may_loosen, err) < 0)
        return -1;
    if (policy->mode == NET_NONE)
        return 0;
    if (!s->networks.available)
        return error_set(err, ERROR_NETWORK_UNAVAILABLE,
                         "spec.network: sandboxes have no network here: %s", s->networks.reason);
    return policy->ipv6 ? check_ipv6(s, err) : 0;
}

static int pack(const struct net_policy *policy, struct arena *arena, struct slice *ret_packed,
                struct error *err)
{
    _cleanup_buf_ struct buf packed = BUF_INIT(NET_POLICY_BYTES_MAX);
    net_policy_pack(policy, &packed);
    if (buf_check(&packed, "a network policy", err) < 0)
        return -1;
    *ret_packed = (struct slice){arena_dup(arena, packed.data, packed.len), packed.len};
    return 0;
}

/* Where it begins. */
static int first_policy(const struct trust_request *security, const struct slice *before,
                        const struct trust_options *options, struct net_policy *policy,
                        struct error *err)
{
    bool told = (security->given & 1U << TRUST_NETWORK_ENABLED) != 0;
    if (before != NULL && security->level == NULL && !(told && !options->network_enabled)) {
        if (net_policy_unpack(*before, policy, err) < 0)
            return -1;
        if (policy->mode != NET_NONE || !told)
            return 0;
    }
    if (options->network_enabled)
        policy->mode = options->network != NET_NONE ? options->network : NET_ISOLATED;
    return 0;
}

int network_resolve(struct sandboxes *s, const char *workspace,
                    const struct trust_request *security, const struct network_request *request,
                    const struct slice *before, struct trust_options *options, struct arena *arena,
                    struct slice *ret_packed, struct error *err)
{
    _cleanup_(net_policy_release) struct net_policy policy = {0};
    bool told = (security->given & 1U << TRUST_NETWORK_ENABLED) != 0;
    bool hosts = (security->given & 1U << TRUST_ALLOWED_HOSTS) != 0;
    bool asked = (request->given != 0 && !request->by_default) || hosts ||
                 (told && options->network_enabled);
    if (first_policy(security, before, options, &policy, err) < 0 ||
        take_request(request, hosts ? &security->hosts : NULL, &policy, err) < 0)
        return -1;
    if (told && !options->network_enabled) {
        if (policy.mode != NET_NONE && (request->given & NETWORK_MODE) && !request->by_default)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "spec.security.network_enabled is false, and spec.network.mode \"%s\"",
                             net_mode_text(policy.mode));
        policy.mode = NET_NONE;
        drop_lists(&(struct network_request){0}, &policy);
    }
    if (!asked && !s->networks.available && before == NULL) {
        net_policy_release(&policy); /* a level's own network, where there are none */
    }
    if (check_policy(s, &policy, options, security->may_loosen, err) < 0 ||
        network_check_secrets(s, workspace, before != NULL ? *before : (struct slice){0}, &policy,
                              err) < 0)
        return -1;
    options->network_enabled = policy.mode != NET_NONE;
    return pack(&policy, arena, ret_packed, err);
}

/* ---- changes ---- */

int sandbox_network_change(struct sandbox *sb, const struct network_request *request,
                           bool may_loosen, struct arena *arena, struct slice *ret_packed,
                           struct error *err)
{
    _cleanup_(net_policy_release) struct net_policy policy = {0};
    const struct slice before = {sb->network.packed, sb->network.packed_len};
    if (!request->replace && net_policy_unpack(before, &policy, err) < 0)
        return -1;
    if (take_request(request, NULL, &policy, err) < 0 ||
        check_policy(sb->owner, &policy, &sb->security, may_loosen, err) < 0 ||
        network_check_secrets(sb->owner, sb->workspace, before, &policy, err) < 0)
        return -1;
    if (policy.mode != NET_NONE && sb->up && sb->network.address[0] == '\0')
        return error_set(err, ERROR_CONFLICT,
                         "sandbox \"%s\" was started without a network: stop it, change this, and "
                         "start it again",
                         sandbox_path(sb));
    return pack(&policy, arena, ret_packed, err);
}

int sandbox_network_agrees(const struct sandbox *sb, const struct trust_request *security,
                           struct error *err)
{
    _cleanup_(net_policy_release) struct net_policy policy = {0}, asked = {0};
    const struct slice packed = {sb->network.packed, sb->network.packed_len};
    bool same = true;
    if (security->given & 1U << TRUST_NETWORK_ENABLED)
        same = security->wanted.network_enabled == sb->security.network_enabled;
    if (security->given & 1U << TRUST_ALLOWED_HOSTS) {
        if (net_policy_unpack(packed, &policy, err) < 0)
            return -1;
        strv_each (host, security->hosts)
            if (net_policy_add(&asked, NET_ALLOW, slice_of(host), err) < 0)
                return error_prefix(err, "spec.security.allowed_hosts");
        same = same && (policy.mode == NET_ALLOWLIST ? policy.allow_count : 0) == asked.allow_count;
        asked.mode = policy.mode = NET_ALLOWLIST;
        for (size_t i = 0; same && i < asked.allow_count; i++) {
            char one[NET_RULE_TEXT], other[NET_RULE_TEXT];
            net_rule_text(&asked.allow[i], one);
            net_rule_text(&policy.allow[i], other);
            same = strcmp(one, other) == 0;
        }
    }
    if (same)
        return 0;
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "spec.security.network_enabled and allowed_hosts tell what spec.network has: "
                     "change it there");
}

int sandboxes_set_network_exceptions(struct sandboxes *s, const char *list, struct error *err)
{
    while (*list != '\0') {
        size_t len = strcspn(list, ",");
        if (net_exceptions_add(&s->networks.exceptions, (struct slice){list, len}, err) < 0)
            return error_prefix(err, "--network-allow-private");
        list += len + (list[len] == ',');
    }
    return 0;
}
