/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The resolver of sandboxes: what a question is answered with, whichever way it came
 * (dns_listen.c). In a mode that names its hosts, a name that is not one of them is not asked
 * about anywhere, so a question carries nothing out; of one that is, only addresses are told, and
 * not before the kernel lets the sandbox through to them.
 */

#include "egress/dns_service.h"

#include <string.h>

#include "base/limits.h"
#include "base/log.h"

enum {
    ADMISSIONS_MAX = 64, /* ranges of ports of one name */
    ADMIT_GRACE_S = 2,   /* between being told an address and its last use */
    ADMIT_MIN_S = 5,
    RANGES_CUT_OFF = 1,
    COMPLAINTS_BURST = 10, /* of one a second */
};

/* What becomes of a question. */
struct verdict {
    enum net_verdict verdict;
    enum dns_rcode rcode;
    const char *detail;
};

/* Types beside addresses: whether they are passed on in modes without a list of names. What is in
 * no row is refused: they would carry more than an answer needs, or lead around the proxies. */
static const struct {
    uint16_t type;
    bool passed; /* else answered with nothing, as by a server that has none */
} types[] = {
    {DNS_NS, true},  {DNS_CNAME, true}, {DNS_SOA, true},   {DNS_MX, true},     {DNS_TXT, true},
    {DNS_SRV, true}, {DNS_CAA, true},   {DNS_SVCB, false}, {DNS_HTTPS, false}, /* keys of encrypted
                                                                                  hellos */
};

static bool is_address(uint16_t type)
{
    return type == DNS_A || type == DNS_AAAA;
}

static void note(struct guest *guest, const struct dns_query *query, const struct verdict *v,
                 const struct net_address *address)
{
    const struct log_event event = {.kind = EGRESS_DNS,
                                    .verdict = v->verdict,
                                    .name = query->name,
                                    .address = address,
                                    .port = 53,
                                    .type = query->type,
                                    .detail = v->detail};
    log_ring_add(&guest->log, &event, wall_ms());
}

static void refuse(struct guest *guest, const struct dns_query *query, struct buf *out,
                   enum net_verdict verdict, enum dns_rcode rcode, const char *detail)
{
    const struct verdict v = {.verdict = verdict, .rcode = rcode, .detail = detail};
    note(guest, query, &v, NULL);
    dns_reply_write(out, query, rcode, NULL, 0, 0);
}

static void answer_nothing(const struct dns_query *query, struct buf *out)
{
    dns_reply_write(out, query, DNS_NOERROR, NULL, 0, 0);
}

/* --- addresses --- */

/* Whether no rule of the policy could make this address one that the guest reaches by that name. */
static bool is_cut_off(struct egress *egress, const struct guest *guest, const char *name,
                       const struct net_address *address)
{
    enum net_verdict verdict = net_policy_resolved(&guest->policy, &egress->guests.exceptions, name,
                                                   address, NET_TCP, RANGES_CUT_OFF);
    return verdict == NET_REFUSED_REBINDING || verdict == NET_REFUSED_IPV6 ||
           !reach_is_outside(&egress->reach, address);
}

static struct net_address address_of(const struct dns_address *from)
{
    return net_address_of(from->family == AF_INET ? NET_IPV4 : NET_IPV6, from->bytes);
}

/* Leaves those that may be told; returns how many were taken out. */
static size_t take_out(struct egress *egress, const struct guest *guest, const char *name,
                       struct dns_answer *answer)
{
    size_t left = 0, before = answer->count;
    for (size_t i = 0; i < before; i++) {
        struct net_address address = address_of(&answer->addresses[i]);
        if (!is_cut_off(egress, guest, name, &address))
            answer->addresses[left++] = answer->addresses[i];
    }
    answer->count = left;
    return before - left;
}

/* Somebody who sets a policy waits for those that were asked for by the one before (control.c). */
static int ask_warden(struct egress *egress, struct guest *guest, const struct net_address *address,
                      const struct net_admission *ports, uint32_t seconds, struct error *err)
{
    const struct net_address *source =
        address->family == NET_IPV4 ? &guest->address : &guest->address6;
    const unsigned policy = guest->policies;
    guest->admitting++;
    int r = warden_link_admit(&egress->warden, guest->id, source, address, ports, seconds, err);
    if (guest->policies == policy)
        guest->admitting--;
    else if (--guest->outdated == 0)
        co_cond_wake_all(&guest->settled);
    return r;
}

/* Has the kernel let the guest through to one address, at the ports that its rules name beside the
 * proxied ones, for as long as it may use the answer. */
static int admit_address(struct egress *egress, struct guest *guest,
                         const struct net_address *address, const struct net_admission *ports,
                         uint32_t ttl, struct error *err)
{
    const struct net_address *source =
        address->family == NET_IPV4 ? &guest->address : &guest->address6;
    int64_t now = loop_now(egress->loop), needed = now + (int64_t)ttl * 1000;
    uint32_t granted = ttl + ADMIT_GRACE_S < ADMIT_MIN_S ? ADMIT_MIN_S : ttl + ADMIT_GRACE_S;
    if (source->family == 0 || admitted_has(&guest->admitted, address, ports, needed))
        return 0;
    if (guest->dropped)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "the sandbox is gone");
    const unsigned policy = guest->policies;
    if (ask_warden(egress, guest, address, ports, granted, err) != 0)
        return -1;
    if (guest->policies == policy)
        admitted_add(&guest->admitted, address, ports, now + (int64_t)granted * 1000, now);
    return 0;
}

/* What one policy says. 1: there is another one by now, which may say otherwise. */
static int admit_once(struct egress *egress, struct guest *guest, const char *name,
                      const struct dns_answer *answer, struct error *err)
{
    struct net_admission ports[ADMISSIONS_MAX];
    const unsigned policy = guest->policies;
    size_t count = net_policy_admissions(&guest->policy, name, ports, ADMISSIONS_MAX);
    for (size_t i = 0; i < answer->count; i++) {
        struct net_address address = address_of(&answer->addresses[i]);
        for (size_t k = 0; k < count; k++) {
            int r = admit_address(egress, guest, &address, &ports[k], answer->ttl, err);
            if (guest->policies != policy)
                return 1;
            if (r != 0)
                return -1;
        }
    }
    return 0;
}

static int admit(struct egress *egress, struct guest *guest, const char *name,
                 const struct dns_answer *answer, struct error *err)
{
    int r;
    do
        r = admit_once(egress, guest, name, answer, err);
    while (r > 0);
    return r;
}

/* A sandbox that asks for more than it may have is told so in its own log, not in the server's. */
static void complain(struct egress *egress, const struct guest *guest, const struct error *err)
{
    if (err->code != ERROR_LIMIT_EXCEEDED &&
        bucket_take(&egress->complaints, loop_now(egress->loop), 1, COMPLAINTS_BURST))
        log_warn("admitting an address for %s: %s", guest->id, err->message);
}

static void tell(struct egress *egress, struct guest *guest, const struct dns_query *query,
                 struct dns_answer *answer, struct buf *out)
{
    struct error err;
    const struct verdict allowed = {.verdict = NET_ALLOWED};
    size_t cut = take_out(egress, guest, query->name, answer);
    if (cut > 0 && answer->count == 0) {
        refuse(guest, query, out, NET_REFUSED_REBINDING, DNS_REFUSED, NULL);
        return;
    }
    if (answer->count > 0 && admit(egress, guest, query->name, answer, &err) != 0) {
        bool limit = err.code == ERROR_LIMIT_EXCEEDED;
        complain(egress, guest, &err);
        refuse(guest, query, out, limit ? NET_REFUSED_LIMIT : NET_FAILED_LOOKUP, DNS_SERVFAIL,
               limit ? "too many addresses at once"
                     : "the kernel could not be told to let it through");
        return;
    }
    /* The policy may have changed while somebody was asked. */
    enum net_verdict verdict = net_policy_lookup(&guest->policy, query->name);
    if (guest->dropped || verdict != NET_ALLOWED) {
        refuse(guest, query, out, verdict, DNS_REFUSED, NULL);
        return;
    }
    struct net_address first = {0};
    for (size_t i = answer->count; i-- > 0;) {
        first = address_of(&answer->addresses[i]);
        told_add(&guest->told, &first, query->name);
    }
    note(guest, query, &allowed, answer->count > 0 ? &first : NULL);
    dns_reply_write(out, query, answer->rcode, answer->addresses, answer->count, answer->ttl);
}

static void answer_addresses(struct egress *egress, struct guest *guest,
                             const struct dns_query *query, struct buf *out)
{
    struct dns_answer answer;
    struct error err;
    if (query->type == DNS_AAAA && (!guest->policy.ipv6 || guest->address6.family == 0)) {
        answer_nothing(query, out);
        return;
    }
    if (!resolver_knows(&egress->resolver, query->name, query->type) &&
        !bucket_take(&guest->lookup_rate, loop_now(egress->loop), EGRESS_LOOKUPS_PER_S,
                     EGRESS_LOOKUPS_BURST)) {
        refuse(guest, query, out, NET_REFUSED_LIMIT, DNS_REFUSED, "too many new names");
        return;
    }
    if (resolver_addresses(&egress->resolver, query->name, query->type, &answer, &err) != 0) {
        refuse(guest, query, out, NET_FAILED_LOOKUP, DNS_SERVFAIL, err.message);
        return;
    }
    if (answer.rcode != DNS_NOERROR && answer.rcode != DNS_NXDOMAIN) {
        refuse(guest, query, out, NET_FAILED_LOOKUP, DNS_SERVFAIL, NULL);
        return;
    }
    tell(egress, guest, query, &answer, out);
}

/* --- everything else --- */

static void answer_records(struct egress *egress, struct guest *guest,
                           const struct dns_query *query, struct buf *out)
{
    struct error err;
    const struct verdict allowed = {.verdict = NET_ALLOWED};
    if (!bucket_take(&guest->lookup_rate, loop_now(egress->loop), EGRESS_LOOKUPS_PER_S,
                     EGRESS_LOOKUPS_BURST)) {
        refuse(guest, query, out, NET_REFUSED_LIMIT, DNS_REFUSED, "too many new names");
        return;
    }
    if (resolver_records(&egress->resolver, query, out, &err) != 0) {
        buf_clear(out);
        refuse(guest, query, out, NET_FAILED_LOOKUP, DNS_SERVFAIL, err.message);
        return;
    }
    note(guest, query, &allowed, NULL);
}

static void answer_other(struct egress *egress, struct guest *guest, const struct dns_query *query,
                         struct buf *out)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].type != query->type)
            continue;
        if (!types[i].passed)
            answer_nothing(query, out);
        else if (guest->policy.mode == NET_ALLOWLIST)
            break;
        else
            answer_records(egress, guest, query, out);
        return;
    }
    refuse(guest, query, out, NET_REFUSED_TYPE, DNS_REFUSED, NULL);
}

static void answer(struct egress *egress, struct guest *guest, const struct dns_query *query,
                   struct buf *out)
{
    struct net_host host;
    struct error err;
    if (net_host_parse(slice_of(query->name), &host, &err) != 0 || host.kind != NET_HOST_NAME) {
        refuse(guest, query, out, NET_REFUSED_MALFORMED, DNS_NXDOMAIN, "no host has such a name");
        return;
    }
    enum net_verdict verdict = net_policy_lookup(&guest->policy, query->name);
    if (verdict != NET_ALLOWED) {
        refuse(guest, query, out, verdict, DNS_REFUSED, NULL);
        return;
    }
    if (guest->policy.mode == NET_ALLOWLIST && strlen(query->name) > EGRESS_NAME_MAX) {
        refuse(guest, query, out, NET_REFUSED_LIMIT, DNS_REFUSED, "the name is too long");
        return;
    }
    if (is_address(query->type))
        answer_addresses(egress, guest, query, out);
    else
        answer_other(egress, guest, query, out);
}

bool dns_answer_question(struct egress *egress, struct guest *guest, struct slice message,
                         size_t max, struct buf *out)
{
    struct dns_query query;
    enum dns_rcode rcode;
    switch (dns_query_parse(message, &query, &rcode)) {
    case DNS_QUERY_DROP:
        return false;
    case DNS_QUERY_BAD: {
        const struct verdict v = {.verdict = NET_REFUSED_MALFORMED};
        query.name[0] = '\0';
        note(guest, &query, &v, NULL);
        dns_reply_bad(out, query.id, rcode);
        return true;
    }
    case DNS_QUERY_GOOD:
        break;
    }
    answer(egress, guest, &query, out);
    size_t most = max != 0 ? max : query.udp_size;
    if (out->failed || out->len > most) {
        buf_clear(out);
        dns_reply_truncated(out, &query);
    }
    return true;
}
