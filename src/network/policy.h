/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a sandbox may reach: a mode, two lists of rules (rule.h), and what goes with them.
 *
 *     none       no network but its own loopback; no lists
 *     isolated   the public Internet. Denied: what `deny` names, but for what `allow` names
 *     full       the same, and the private ranges that the operator has opened to sandboxes
 *     allowlist  nothing but what `allow` names, without what `deny` names; of private ranges, what
 *                is both named here and opened by the operator
 *
 * So the list that a mode is not about holds the exceptions from the other, and wins. Cut off in
 * every mode: other sandboxes, this machine, and all of net_ranges that is not opened.
 *
 * Everything here is pure: no clock, no lookups. Names that are asked about are canonical (host.h).
 */

#include "base/buf.h"
#include "network/rule.h"

#define NET_MODES(X)                                                                               \
    X(NONE, "none")                                                                                \
    X(ISOLATED, "isolated")                                                                        \
    X(ALLOWLIST, "allowlist")                                                                      \
    X(FULL, "full")

enum net_mode {
#define X(name, text) NET_##name,
    NET_MODES(X)
#undef X
        NET_MODE_COUNT
};

const char *net_mode_text(enum net_mode mode);
/* INVALID_ARGUMENT lists the modes there are. */
int net_mode_parse(struct slice text, enum net_mode *ret_mode, struct error *err);

/*
 * What became of a question, a connection or a request, and why. Also the log's words: those that
 * a policy alone does not give are the egress process's.
 */
#define NET_VERDICTS(X)                                                                            \
    X(ALLOWED, "allowed")                                                                          \
    X(REFUSED_MODE, "no network")                                                                  \
    X(REFUSED_UNLISTED, "not in the allow list")                                                   \
    X(REFUSED_DENIED, "in the deny list")                                                          \
    X(REFUSED_FORBIDDEN, "private, link-local or local address")                                   \
    X(REFUSED_QUIC, "UDP 443 hides the name")                                                      \
    X(REFUSED_IPV6, "IPv6 is off")                                                                 \
    X(REFUSED_REBINDING, "the name leads to a private address")                                    \
    X(REFUSED_NO_NAME, "no name was given")                                                        \
    X(REFUSED_MALFORMED, "malformed")                                                              \
    X(REFUSED_HIDDEN_NAME, "the name is encrypted")                                                \
    X(REFUSED_TYPE, "this type of question is not answered")                                       \
    X(REFUSED_LIMIT, "too many, or too much")                                                      \
    X(REFUSED_CHANGED, "the policy was changed")                                                   \
    X(FAILED_LOOKUP, "the name could not be resolved")                                             \
    X(FAILED_CONNECT, "the host could not be reached")                                             \
    X(FAILED_TLS, "the host's certificate or TLS failed")                                          \
    X(FAILED_SECRET, "the secret is not there")

enum net_verdict {
#define X(name, text) NET_##name,
    NET_VERDICTS(X)
#undef X
        NET_VERDICT_COUNT
};

const char *net_verdict_text(enum net_verdict verdict); /* for people */
const char *net_verdict_name(enum net_verdict verdict); /* "REFUSED_UNLISTED" */

enum { NET_HEADER_NAME_MAX = 64, NET_HEADER_FORMAT_MAX = 256 };

/* Instead of a secret's name: the header's format is its value, and everybody may know it. */
#define NET_NO_SECRET "-"

/* Requests to a host get a header, whose value holds a secret that the sandbox never sees. */
struct net_header {
    struct net_rule host;                   /* of kind NET_RULE_NAME or NET_RULE_BELOW, no ports */
    char header[NET_HEADER_NAME_MAX + 1];   /* "authorization": a field name, in lower case */
    char secret[NAME_MAX_LEN + 1];          /* name of the secret, in the sandbox's workspace; or
                                               NET_NO_SECRET */
    char format[NET_HEADER_FORMAT_MAX + 1]; /* "Bearer {}": {} is where it goes, exactly once */
    bool upgrade; /* such requests may become WebSockets, in which secrets are found less surely */
};

/* Zeros are mode none. */
struct net_policy {
    enum net_mode mode;
    bool ipv6;
    uint64_t rate_in, rate_out; /* bytes per second; 0: no limit */
    struct net_rule *allow, *deny;
    size_t allow_count, deny_count;
    struct net_header *headers;
    size_t header_count;
};

void net_policy_release(struct net_policy *policy); /* zeros afterwards */
int net_policy_copy(const struct net_policy *from, struct net_policy *ret_policy,
                    struct error *err);
bool net_policy_same(const struct net_policy *a, const struct net_policy *b);

enum net_list { NET_ALLOW, NET_DENY };

/* Appends a rule. INVALID_ARGUMENT, LIMIT_EXCEEDED past NET_RULES_MAX; one that is there already is
 * fine. */
int net_policy_add(struct net_policy *policy, enum net_list list, struct slice text,
                   struct error *err);
/* Appends a header; format NULL: "{}". INVALID_ARGUMENT also for fields that frame a request
 * (Host, Content-Length, …), LIMIT_EXCEEDED past NET_HEADERS_MAX. */
int net_policy_add_header(struct net_policy *policy, struct slice host, const char *header,
                          const char *secret, const char *format, struct error *err);

/* What would make a policy that cannot hold: INVALID_ARGUMENT for lists or headers without a
 * network, and for a name that an open mode is to deny at some ports other than the web's;
 * NETWORK_REFUSED for rules that allow only what is cut off. */
int net_policy_check(const struct net_policy *policy, const struct net_exceptions *exceptions,
                     struct error *err);

/* Whether TCP 80 and 443 go through the egress process, which sees names. DNS always does. */
bool net_policy_proxied(const struct net_policy *policy);
/* Whether a name may be the reason to refuse something, so that what hides its name is refused as
 * well. Where it is proxied only because requests get headers, no name is. */
bool net_policy_names_decide(const struct net_policy *policy);

/* ---- verdicts ---- */

/* May this name be reached at this port? The address that it leads to has to be looked at as well:
 * net_policy_resolved(). */
enum net_verdict net_policy_name(const struct net_policy *policy, const char *name,
                                 enum net_protocol protocol, uint16_t port);

/* Is there any port at which this name may be reached, so that its addresses may be told? */
enum net_verdict net_policy_lookup(const struct net_policy *policy, const char *name);

/* May a connection be made to this address of an allowed name? Denied addresses, and what is cut
 * off, may not (REFUSED_REBINDING); a private one may where it is opened, in the modes that have
 * it. */
enum net_verdict net_policy_resolved(const struct net_policy *policy,
                                     const struct net_exceptions *exceptions, const char *name,
                                     const struct net_address *address, enum net_protocol protocol,
                                     uint16_t port);

/* May this address be reached as it is, whatever name is used for it? In allowlist mode: is it in a
 * rule of addresses? */
enum net_verdict net_policy_address(const struct net_policy *policy,
                                    const struct net_exceptions *exceptions,
                                    const struct net_address *address, enum net_protocol protocol,
                                    uint16_t port);

/* May a connection that is proxied, and names no host, go on to the address that it was made to? As
 * above; but where names decide, only to one that a rule allows. */
enum net_verdict net_policy_nameless(const struct net_policy *policy,
                                     const struct net_exceptions *exceptions,
                                     const struct net_address *address, enum net_protocol protocol,
                                     uint16_t port);

/* The ports at which an allowed name's addresses are to be admitted by the kernel once they were
 * told: all that its rules name, but for those that are proxied (TCP 80 and 443) and UDP 443. Only
 * allowlist mode has any. Returns how many of `max` were filled in. */
struct net_admission {
    enum net_protocol protocol; /* NET_TCP or NET_UDP */
    uint16_t low, high;
};
size_t net_policy_admissions(const struct net_policy *policy, const char *name,
                             struct net_admission *ret_admissions, size_t max);

/* The header for a request to this name; NULL: none. The first that matches, of those after `after`
 * (NULL: of all). */
const struct net_header *net_policy_header(const struct net_policy *policy, const char *name,
                                           const struct net_header *after);
/* Whether requests to this name may become WebSockets although they get headers: each header with a
 * secret allows it. */
bool net_policy_upgrades(const struct net_policy *policy, const char *name);

/* ---- as bytes ---- */

/* All of it as a list of strings (base/slice.h), as the store keeps it and the egress process is
 * sent it: "mode=allowlist", "allow=*.example.com", "header=…". */
void net_policy_pack(const struct net_policy *policy, struct buf *out);
/* INVALID_ARGUMENT. An empty list is mode none. */
int net_policy_unpack(struct slice list, struct net_policy *ret_policy, struct error *err);
