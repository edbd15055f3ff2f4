/* SPDX-License-Identifier: Apache-2.0 */

/* Hosts, rules and packed policies: whatever the bytes, no crash; what is accepted is canonical,
 * and reads the same again. The first byte chooses. */

#include "network/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(struct slice text)
{
    struct net_host host, again;
    if (net_host_parse(text, &host, NULL) < 0 || host.kind != NET_HOST_NAME)
        return;
    if (net_host_parse(slice_of(host.name), &again, NULL) < 0 || again.kind != NET_HOST_NAME ||
        strcmp(host.name, again.name) != 0)
        abort();
    for (const char *c = host.name; *c != '\0'; c++)
        if (*c <= ' ' || *c >= 0x7f || (*c >= 'A' && *c <= 'Z'))
            abort();
}

static void check_authority(struct slice text)
{
    struct net_host host;
    uint16_t port = 0;
    if (net_authority_parse(text, 80, &host, &port, NULL) == 0 && port == 0)
        abort();
}

static void check_rule(struct slice text)
{
    struct net_rule rule, again;
    char one[NET_RULE_TEXT], other[NET_RULE_TEXT];
    if (net_rule_parse(text, &rule, NULL) < 0)
        return;
    net_rule_text(&rule, one);
    if (net_rule_parse(slice_of(one), &again, NULL) < 0)
        abort();
    net_rule_text(&again, other);
    if (strcmp(one, other) != 0)
        abort();
}

static void check_policy(struct slice bytes)
{
    _cleanup_(net_policy_release) struct net_policy policy = {0}, again = {0};
    _cleanup_buf_ struct buf packed = BUF_INIT(NET_POLICY_BYTES_MAX);
    if (net_policy_unpack(bytes, &policy, NULL) < 0)
        return;
    net_policy_pack(&policy, &packed);
    if (packed.failed ||
        net_policy_unpack((struct slice){packed.data, packed.len}, &again, NULL) < 0 ||
        (policy.mode != NET_NONE && !net_policy_same(&policy, &again)))
        abort();
    struct net_admission admissions[64];
    net_policy_admissions(&policy, "a.example.com", admissions, 64);
    net_policy_name(&policy, "a.example.com", NET_TCP, 443);
    net_policy_lookup(&policy, "a.example.com");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(struct slice) = {check_host, check_authority, check_rule,
                                                   check_policy};
    if (size == 0)
        return 0;
    /* A copy of exactly this size, so that reading past the end is seen. */
    _cleanup_free_ char *copy = malloc(size);
    if (copy == NULL)
        return 0;
    memcpy(copy, data + 1, size - 1);
    checks[data[0] % ARRAY_LEN(checks)]((struct slice){copy, size - 1});
    return 0;
}
