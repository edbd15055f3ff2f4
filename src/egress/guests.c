/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of guests, and what a change of policy does to what is open. */

#include "egress/guests.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

uint64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool bucket_take(struct bucket *bucket, int64_t now_ms, unsigned per_second, unsigned burst)
{
    int64_t full = (int64_t)burst * 1000;
    if (bucket->filled_ms == 0)
        bucket->thousandths = full;
    else
        bucket->thousandths += (now_ms - bucket->filled_ms) * per_second;
    bucket->filled_ms = now_ms > 0 ? now_ms : 1;
    if (bucket->thousandths > full)
        bucket->thousandths = full;
    if (bucket->thousandths < 1000)
        return false;
    bucket->thousandths -= 1000;
    return true;
}

/* --- finding --- */

struct guest *guests_find(struct guests *guests, const char *id)
{
    struct guest *guest;
    HASH_FIND(by_id, guests->ids, id, strlen(id), guest);
    return guest;
}

struct guest *guests_at(struct guests *guests, const struct net_address *address)
{
    struct guest *guest;
    if (address->family == NET_IPV4)
        HASH_FIND(by_address, guests->addresses, address->bytes, 4, guest);
    else
        HASH_FIND(by_address6, guests->addresses6, address->bytes, 16, guest);
    return guest;
}

struct guest *guest_ref(struct guest *guest)
{
    guest->refs++;
    return guest;
}

void guest_unref(struct guest *guest)
{
    if (--guest->refs > 0)
        return;
    net_policy_release(&guest->policy);
    inject_unref(guest->inject);
    log_ring_release(&guest->log);
    admitted_release(&guest->admitted);
    told_release(&guest->told);
    free(guest);
}

/* --- connections --- */

enum { SHARE_MIN = 8 }; /* connections that everybody may have */

bool guest_may_connect(const struct guests *guests, const struct guest *guest, unsigned most)
{
    unsigned share = SHARE_MIN + most / 2 / (HASH_CNT(by_id, guests->ids) + 1);
    if (guests->flow_count >= most || guest->flow_count >= EGRESS_GUEST_FLOWS_MAX)
        return false;
    return guests->flow_count < most / 2 || guest->flow_count < share;
}

void flow_join(struct guests *guests, struct flow *flow, struct guest *guest, struct loop *loop)
{
    flow->guest = guest_ref(guest);
    flow->co = co_self(loop);
    flow->prev = NULL;
    flow->next = guest->flows;
    if (guest->flows != NULL)
        guest->flows->prev = flow;
    guest->flows = flow;
    guest->flow_count++;
    guests->flow_count++;
}

void flow_leave(struct guests *guests, struct flow *flow)
{
    struct guest *guest = flow->guest;
    *(flow->prev != NULL ? &flow->prev->next : &guest->flows) = flow->next;
    if (flow->next != NULL)
        flow->next->prev = flow->prev;
    guest->flow_count--;
    guests->flow_count--;
    flow->guest = NULL;
    guest_unref(guest);
}

enum net_verdict flow_verdict(const struct guests *guests, const struct flow *flow)
{
    const struct net_policy *policy = &flow->guest->policy;
    if (flow->name[0] == '\0')
        return net_policy_nameless(policy, &guests->exceptions, &flow->address, NET_TCP,
                                   flow->port);
    enum net_verdict verdict = net_policy_name(policy, flow->name, NET_TCP, flow->port);
    if (verdict != NET_ALLOWED || flow->address.family == 0)
        return verdict;
    return net_policy_resolved(policy, &guests->exceptions, flow->name, &flow->address, NET_TCP,
                               flow->port);
}

static void close_flow(struct flow *flow, enum net_verdict why)
{
    flow->closed = why;
    co_cancel(flow->co);
}

/* What was allowed by the policy before. What is still being judged meets the new one anyway. */
static bool is_refused(const struct guests *guests, const struct flow *flow)
{
    return flow_verdict(guests, flow) != NET_ALLOWED ||
           (flow->upgraded && !net_policy_upgrades(&flow->guest->policy, flow->name));
}

static void close_refused(const struct guests *guests, struct guest *guest)
{
    for (struct flow *flow = guest->flows; flow != NULL; flow = flow->next)
        if (flow->judged && is_refused(guests, flow))
            close_flow(flow, NET_REFUSED_CHANGED);
}

/* --- changing --- */

static void forget_addresses(struct guests *guests, struct guest *guest)
{
    HASH_DELETE(by_address, guests->addresses, guest);
    if (guest->address6.family != 0)
        HASH_DELETE(by_address6, guests->addresses6, guest);
}

void guests_drop(struct guests *guests, struct guest *guest)
{
    HASH_DELETE(by_id, guests->ids, guest);
    forget_addresses(guests, guest);
    guest->dropped = true;
    for (struct flow *flow = guest->flows; flow != NULL; flow = flow->next)
        close_flow(flow, NET_REFUSED_MODE);
    direct_end_all(guests, guest);
    guest_unref(guest);
}

static bool list_has(struct slice ids, const char *id)
{
    strv_each (item, ids)
        if (strcmp(item, id) == 0)
            return true;
    return false;
}

void guests_keep(struct guests *guests, struct slice ids)
{
    struct guest *guest, *next;
    HASH_ITER(by_id, guests->ids, guest, next)
    if (!list_has(ids, guest->id))
        guests_drop(guests, guest);
}

void guests_release(struct guests *guests)
{
    guests_keep(guests, (struct slice){0});
}

static void take_address(struct guests *guests, struct guest *guest,
                         const struct net_address *address, const struct net_address *address6)
{
    struct guest *other = guests_at(guests, address);
    if (other != NULL)
        guests_drop(guests, other);
    guest->address = *address;
    HASH_ADD(by_address, guests->addresses, address.bytes, 4, guest);
    guest->address6 = *address6;
    if (address6->family == 0)
        return;
    other = guests_at(guests, address6);
    if (other != NULL)
        guests_drop(guests, other);
    HASH_ADD(by_address6, guests->addresses6, address6.bytes, 16, guest);
}

static struct guest *guest_new(struct guests *guests, const char *id, uint64_t log_after)
{
    struct guest *guest = calloc(1, sizeof(*guest));
    if (guest == NULL)
        abort();
    memcpy(guest->id, id, strlen(id));
    guest->refs = 1;
    log_ring_init(&guest->log, &guests->changes, guest->id, log_after);
    HASH_ADD(by_id, guests->ids, id, strlen(guest->id), guest);
    return guest;
}

static int parse_addresses(const struct egress_set *set, struct net_address *ret_address,
                           struct net_address *ret_address6, struct error *err)
{
    *ret_address6 = (struct net_address){0};
    if (net_address_parse(slice_of(set->address), ret_address, err) != 0)
        return -1;
    if (ret_address->family != NET_IPV4)
        return error_set(err, ERROR_INVALID_ARGUMENT, "a guest's address is IPv4");
    if (set->address6 == NULL)
        return 0;
    if (net_address_parse(slice_of(set->address6), ret_address6, err) != 0)
        return -1;
    return ret_address6->family == NET_IPV6
               ? 0
               : error_set(err, ERROR_INVALID_ARGUMENT, "a guest's second address is IPv6");
}

/* Others than before (NULL: none): what works with those has to go. */
static void take_secrets(struct guest *guest, struct inject *inject)
{
    inject_unref(guest->inject);
    guest->inject = inject;
    for (struct flow *flow = guest->flows; flow != NULL; flow = flow->next)
        if (flow->secret)
            close_flow(flow, NET_REFUSED_CHANGED);
}

int guests_set(struct guests *guests, const struct egress_set *set, struct error *err)
{
    struct net_address address, address6;
    struct net_policy policy = {0};
    if (set->id[0] == '\0' || strlen(set->id) >= GUEST_ID_SIZE ||
        (set->workspace != NULL && strlen(set->workspace) > NAME_MAX_LEN))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a guest's id or workspace makes no sense");
    if (parse_addresses(set, &address, &address6, err) != 0 ||
        net_policy_unpack(set->policy, &policy, err) != 0)
        return -1;
    struct guest *guest = guests_find(guests, set->id);
    if (guest == NULL && HASH_CNT(by_id, guests->ids) >= EGRESS_GUESTS_MAX) {
        net_policy_release(&policy);
        return error_set(err, ERROR_LIMIT_EXCEEDED, "more than %d sandboxes have a network",
                         EGRESS_GUESTS_MAX);
    }
    if (guest == NULL)
        guest = guest_new(guests, set->id, set->log_after);
    else
        forget_addresses(guests, guest);
    take_address(guests, guest, &address, &address6);
    net_policy_release(&guest->policy);
    guest->policy = policy;
    guest->policies++;
    guest->outdated += guest->admitting;
    guest->admitting = 0;
    memset(guest->workspace, 0, sizeof(guest->workspace));
    if (set->workspace != NULL)
        memcpy(guest->workspace, set->workspace, strlen(set->workspace));
    if (policy.header_count == 0 && guest->inject != NULL)
        take_secrets(guest, NULL); /* nobody sends those of a policy that has none */
    close_refused(guests, guest);
    if (policy.mode == NET_NONE)
        direct_end_all(guests, guest);
    return 0;
}

int guests_set_secrets(struct guests *guests, const struct egress_secrets *secrets,
                       struct error *err)
{
    struct guest *guest = guests_find(guests, secrets->id);
    struct inject *inject;
    if (guest == NULL)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "no sandbox %s has a network here",
                         secrets->id);
    if (inject_new(secrets, &inject, err) != 0)
        return -1;
    if (inject_same(guest->inject, inject)) {
        inject_unref(inject);
        return 0;
    }
    take_secrets(guest, inject);
    return 0;
}
