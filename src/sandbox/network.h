/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Networks of sandboxes, as cellad sees them: the policy of each (network/policy.h) is part of its
 * record; the kernel's part of it is the warden's, names are the egress process's, and both are
 * told from here. A change is recorded first, then told; whoever was away is told again when he is
 * back, so that after any crash what holds is what is recorded. Until the egress process knows a
 * sandbox, it lets nothing of it through.
 */

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "network/policy.h"
#include "sandbox/trust.h"
#include "wire/messages.h"

struct sandboxes;
struct sandbox_info;

enum network_given {
    NETWORK_MODE = 1 << 0,
    NETWORK_ALLOW = 1 << 1,
    NETWORK_DENY = 1 << 2,
    NETWORK_HEADERS = 1 << 3,
    NETWORK_IPV6 = 1 << 4,
};

/* What a request says about it. Zeros: nothing. */
struct network_request {
    unsigned given; /* enum network_given */
    enum net_mode mode;
    struct slice allow, deny; /* lists of strings, instead of those before */
    struct slice headers;     /* a list of strings, five each: host, header, secret, format, and
                                 "upgrade" or "" */
    bool ipv6;
    bool by_default; /* nobody asked: where there are no networks it goes without */
    bool replace;    /* what is not given is not, either; else it stays as it was */
};

/* Where sandboxes have a network here at all; the reason why not, for people (NULL: they have). */
const char *sandboxes_network_reason(struct sandboxes *s);

/* The private ranges that sandboxes may be let into: "10.1.0.0/16,fd00::/8", or "". Before
 * sandboxes_recover(). */
int sandboxes_set_network_exceptions(struct sandboxes *s, const char *list, struct error *err);

/*
 * The policy of a sandbox that is to be made, packed, in the arena. It begins with the level's (or
 * with `before`, a clone's source's, when the request names no level), and becomes what both
 * requests say. options->network_enabled says afterwards whether there is a network. FORBIDDEN for
 * more than the level allows, NETWORK_REFUSED, NETWORK_UNAVAILABLE, INVALID_ARGUMENT,
 * LIMIT_EXCEEDED; SECRET_NOT_FOUND and FORBIDDEN for headers that `before` has not.
 */
int network_resolve(struct sandboxes *s, const char *workspace,
                    const struct trust_request *security, const struct network_request *request,
                    const struct slice *before, struct trust_options *options, struct arena *arena,
                    struct slice *ret_packed, struct error *err);

/*
 * Where the values behind a policy's headers come from: fills *ret_secrets for the sandbox, strings
 * in the arena (wiped by nobody). Asked after each EGRESS_SET of a policy with headers. Nobody set:
 * requests to those hosts fail.
 */
typedef int network_secrets(void *ctx, const char *id, const char *workspace,
                            const struct net_policy *policy, struct arena *arena,
                            struct egress_secrets *ret_secrets, struct error *err);
/* Whether a header may be part of a policy from now on. SECRET_NOT_FOUND, FORBIDDEN (the secret may
 * not be sent to that host). */
typedef int network_secret_check(void *ctx, const char *workspace, const struct net_header *header,
                                 struct error *err);
void sandboxes_set_secrets(struct sandboxes *s, network_secrets *fill, network_secret_check *check,
                           void *ctx);
/* They have changed: running sandboxes of the workspace that use some get them anew. On a
 * coroutine. */
void sandboxes_secrets_changed(struct sandboxes *s, const char *workspace);
