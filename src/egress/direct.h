/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What goes past the proxies, written down from what the kernel tells: connections by address in
 * the modes that are open, by a rule on addresses, or to other ports than the web's; and what its
 * rules refuse. A connection's entry gets its bytes when it ends. The kernel forgets one up to a
 * minute and a half after its end, so of TCP they are asked for as soon as both sides are done.
 *
 * Nothing is decided here. Events that are lost, because there were too many to take, cost the log
 * an entry or the bytes of one.
 */

#include <uthash.h>

#include "base/limits.h"
#include "egress/kernel_event.h"
#include "egress/log_ring.h"
#include "loop/co.h"

struct egress;
struct guest;
struct guests;

struct direct_key { /* compared as bytes: start from a zeroed one */
    struct net_address from, to;
    uint16_t from_port, to_port;
    uint8_t protocol;
};

struct direct_flow {
    struct direct_key key;
    struct guest *guest;
    struct direct_flow *prev, *next; /* of its guest */
    enum net_verdict verdict;
    struct log_live live;
    UT_hash_handle hh;
};

/* Those that are closed, and have to be asked about. */
struct direct_queue { /* start from a zeroed struct */
    struct direct_key keys[EGRESS_CLOSED_MAX];
    size_t first, count;
    struct co_cond more;
};

/* Serves one of the warden's sockets with such events (owned from now on). On a coroutine. */
void direct_serve(struct egress *egress, int fd);

/* Asks the warden how much those were that are closed, for ever. On a coroutine of its own. */
void direct_count(struct egress *egress);

/* The guest has no network any more: nothing of it is open. */
void direct_end_all(struct guests *guests, struct guest *guest);
