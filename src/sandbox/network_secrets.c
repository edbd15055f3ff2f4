/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which secrets a policy may name. A header whose secret does not exist, or may not be sent to its
 * host, would have every request fail with nobody there to read why: so it is refused when it is
 * set. What a policy has already it keeps, whatever becomes of the secret: that of a running agent
 * can be taken away at any time, and what is read can be written back.
 */

#include <string.h>

#include "base/cleanup.h"
#include "sandbox/state.h"

void sandboxes_set_secrets(struct sandboxes *s, network_secrets *fill, network_secret_check *check,
                           void *ctx)
{
    s->networks.secrets = fill;
    s->networks.secret_check = check;
    s->networks.secrets_ctx = ctx;
}

static bool same_header(const struct net_header *a, const struct net_header *b)
{
    char one[NET_RULE_TEXT], other[NET_RULE_TEXT];
    net_rule_text(&a->host, one);
    net_rule_text(&b->host, other);
    return strcmp(one, other) == 0 && strcmp(a->secret, b->secret) == 0;
}

static bool has_header(const struct net_policy *policy, const struct net_header *header)
{
    for (size_t i = 0; i < policy->header_count; i++)
        if (same_header(&policy->headers[i], header))
            return true;
    return false;
}

int network_check_secrets(struct sandboxes *s, const char *workspace, struct slice before,
                          const struct net_policy *policy, struct error *err)
{
    const struct networks *n = &s->networks;
    _cleanup_(net_policy_release) struct net_policy had = {0};
    if (policy->header_count == 0 || n->secret_check == NULL)
        return 0;
    if (net_policy_unpack(before, &had, err) < 0)
        return -1;
    for (size_t i = 0; i < policy->header_count; i++)
        if (!has_header(&had, &policy->headers[i]) &&
            n->secret_check(n->secrets_ctx, workspace, &policy->headers[i], err) < 0)
            return error_prefix(err, "spec.network.headers[%zu]", i);
    return 0;
}
