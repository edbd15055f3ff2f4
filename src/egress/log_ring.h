/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a sandbox asked for and what became of it, newest last: at most EGRESS_LOG_MAX entries, the
 * oldest go first. The same event again within LOG_RING_SAME_MS counts up in its entry, so that a
 * program that tries in a loop does not push everything else out.
 */

#include <stdbool.h>
#include <stdint.h>

#include "loop/co.h"
#include "loop/net.h"
#include "network/policy.h"
#include "wire/messages.h"

enum { LOG_RING_SAME_MS = 60 * 1000, LOG_RING_LOOK_BACK = 32, LOG_RING_TEXT_MAX = 200 };

struct log_event {
    enum egress_log_kind kind;
    enum net_verdict verdict;
    const char *name;                  /* NULL: none */
    const struct net_address *address; /* NULL: none */
    uint16_t port;
    uint16_t type;
    uint8_t protocol;   /* as in the IP header; 0: goes without saying */
    const char *detail; /* NULL: none. Never a secret */
};

/* All entries of all rings in the order in which they were changed, for who keeps them for good: he
 * remembers the number of the last change that he has, and needs to know nothing else. */
struct log_changes { /* start from a zeroed struct */
    struct log_item *oldest, *newest;
    uint64_t last;       /* numbers count up from 1 */
    struct co_cond more; /* there is another one */
};

struct log_ring {                /* start from a zeroed struct, or with log_ring_init() */
    struct log_changes *changes; /* NULL: nobody wants to know */
    const char *owner;           /* borrowed */
    struct log_item **items;
    size_t first; /* index of the oldest */
    size_t count;
    uint64_t sequence;
};

/* A connection that is open: its entry shows the live counters for as long as it is kept. */
struct log_live {
    struct log_item *item;    /* NULL: no longer kept */
    struct net_relayed moved; /* bytes, counted by the owner: `there` is out of the sandbox */
};

/* Of this owner, whose earlier entries went up to the number `after`. */
void log_ring_init(struct log_ring *ring, struct log_changes *changes, const char *owner,
                   uint64_t after);
void log_ring_release(struct log_ring *ring);
void log_ring_add(struct log_ring *ring, const struct log_event *event, uint64_t now_ms);
/* An entry of its own for a connection; ends with log_live_end(), before `live` goes. */
void log_ring_open(struct log_ring *ring, const struct log_event *event, struct log_live *live,
                   uint64_t now_ms);
/* Closed, with this last word. Fine when its entry is gone, or its ring. */
void log_live_end(struct log_live *live, enum net_verdict verdict, uint64_t now_ms);

typedef void log_each(void *ctx, const struct egress_log_entry *entry);

/* Calls `each` with the newest `max` of the entries behind `after`, the oldest first. */
void log_ring_read(const struct log_ring *ring, uint64_t after, size_t max, log_each *each,
                   void *ctx);
/* Whether any kept entry was changed after that change. `last` does not tell: the entries that it
 * counted may be gone with their ring. */
bool log_changes_has(const struct log_changes *changes, uint64_t after);
/* The first `max` of those of all rings that were changed after that change, in this order. */
void log_changes_read(const struct log_changes *changes, uint64_t after, size_t max, log_each *each,
                      void *ctx);
