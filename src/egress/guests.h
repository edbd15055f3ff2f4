/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sandboxes that the egress process answers, by the address that their packets come from (which
 * the kernel has made sure of), each with its policy, its log and what it has open.
 *
 * A guest that is dropped leaves the tables at once; its memory stays until the last coroutine that
 * works for it has let go (guest_unref()).
 */

#include <stdint.h>
#include <uthash.h>

#include "base/limits.h"
#include "egress/admitted.h"
#include "egress/direct.h"
#include "egress/inject.h"
#include "egress/log_ring.h"
#include "egress/told.h"
#include "loop/co.h"
#include "network/policy.h"

enum { GUEST_ID_SIZE = 33 };

/* So many at once, then so many per second. */
struct bucket {
    int64_t filled_ms;
    int64_t thousandths;
};

bool bucket_take(struct bucket *bucket, int64_t now_ms, unsigned per_second, unsigned burst);

struct guest;

/* A connection through a proxy, for as long as it is open. */
struct flow {
    struct guest *guest;
    struct co *co;               /* cancelled to close it */
    struct flow *prev, *next;    /* of its guest */
    enum egress_log_kind kind;   /* EGRESS_HTTP, EGRESS_TLS, EGRESS_DIRECT */
    char name[NET_NAME_MAX + 1]; /* canonical; "": by address only, or not known yet */
    struct net_address address;  /* where it goes; family 0: not known yet */
    uint16_t port;
    bool judged;             /* a verdict allowed it: it has to go when that changes */
    enum net_verdict closed; /* why it was cancelled; NET_ALLOWED: it was not */
    bool secret;             /* its requests get one: it has to go when that changes */
    bool upgraded;           /* one of those has become a WebSocket */
    struct log_live live;
};

struct guest {
    char id[GUEST_ID_SIZE];
    struct net_address address;
    struct net_address address6; /* family 0: none */
    struct net_policy policy;
    struct inject *inject; /* secrets for its requests; NULL: none */
    char workspace[NAME_MAX_LEN + 1];
    struct log_ring log;
    struct flow *flows;
    unsigned flow_count;
    unsigned questions; /* under way */
    struct bucket question_rate, lookup_rate;
    struct admitted admitted;
    unsigned policies;      /* how many it has had: another number, another policy */
    unsigned admitting;     /* requests to the warden under way, for this policy … */
    unsigned outdated;      /* … and for earlier ones */
    struct co_cond settled; /* there are none for earlier ones any more */
    struct told told;
    struct direct_flow *directs;
    unsigned direct_count;
    bool direct_lost; /* there were more than are remembered */
    unsigned refs;
    bool dropped;
    UT_hash_handle by_id;
    UT_hash_handle by_address;
    UT_hash_handle by_address6;
};

struct guests { /* start from a zeroed struct */
    struct guest *ids;
    struct guest *addresses;
    struct guest *addresses6;
    struct net_exceptions exceptions; /* the operator's */
    unsigned flow_count;
    struct direct_flow *directs; /* of all, by their key */
    struct log_changes changes;  /* in the logs of all */
};

void guests_release(struct guests *guests);

/* A new guest, or another policy for one that is there: what it no longer allows is closed.
 * INVALID_ARGUMENT, LIMIT_EXCEEDED. */
int guests_set(struct guests *guests, const struct egress_set *set, struct error *err);
/* Other secrets for one that is there: what works with those before is closed. INVALID_ARGUMENT,
 * SANDBOX_NOT_FOUND. */
int guests_set_secrets(struct guests *guests, const struct egress_secrets *secrets,
                       struct error *err);
void guests_drop(struct guests *guests, struct guest *guest);
/* Drops all that are not in the list. */
void guests_keep(struct guests *guests, struct slice ids);

struct guest *guests_find(struct guests *guests, const char *id);
struct guest *guests_at(struct guests *guests, const struct net_address *address);

struct guest *guest_ref(struct guest *guest);
void guest_unref(struct guest *guest);

/* Whether it may have one more connection, of `most` that all can have together. As long as there
 * is room it may have many; once half of it is taken, no more than its share of the other half, so
 * that a few cannot take all. */
bool guest_may_connect(const struct guests *guests, const struct guest *guest, unsigned most);

/* Takes part in the guest's connections; the running coroutine is what gets cancelled. */
void flow_join(struct guests *guests, struct flow *flow, struct guest *guest, struct loop *loop);
void flow_leave(struct guests *guests, struct flow *flow);
/* Whether the guest's policy lets it be, where it goes now. */
enum net_verdict flow_verdict(const struct guests *guests, const struct flow *flow);

uint64_t wall_ms(void); /* Unix time */
