/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One sandbox's part of the rules, by nf_tables' own messages: a hundred times faster than the nft
 * program. The tables, chains and sets that they go into are net_rules.c's.
 *
 * What a sandbox may do is in its mark, which every packet of it gets first:
 *
 *     bits 0–1   enum plan_network
 *     bit 2      ports 80 and 443 go to the proxies
 *     bit 3, 4   what its own rules say of this packet: allowed, denied
 *     bit 5      it has IPv6
 *     bits 8–31  its generation
 *
 * A connection that was admitted carries the generation. One that is changed gets a new one, and so
 * does every policy: what was open is then judged again with its next packet, and what the resolver
 * had admitted is admitted no more.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "warden/net_six.h"
#include "warden/netlink.h"
#include "wire/messages.h"

#define NET_TABLE "cella"

enum {
    NET_MARK_MODE = 0x3,
    NET_MARK_PROXIED = 0x4,
    NET_MARK_ALLOWED = 0x8,
    NET_MARK_DENIED = 0x10,
    NET_MARK_IPV6 = 0x20,
    NET_GENERATION_SHIFT = 8,
};
#define NET_MARK_GENERATION UINT32_C(0xffffff00)

struct filter_entry {
    const char *interface;  /* "cv7" */
    uint32_t address;       /* IPv4, host order */
    struct six_address six; /* with NET_MARK_IPV6 */
    uint32_t mark;          /* 0: it has no network */
    bool ruled;             /* it has a chain of rules on addresses */
};

/*
 * From `old` (NULL: nothing) to `entry` (NULL: nothing), in one transaction. `rules` are struct
 * plan_net_rule, checked. When the kernel holds something else than `old`, the error is ENOENT's or
 * EEXIST's (err->sys) and nothing is changed.
 */
int filter_change(struct netlink *rules_socket, const struct filter_entry *old,
                  const struct filter_entry *entry, struct slice rules, struct error *err);

/* Takes out whatever there is of an interface, one by one, and is content with nothing. */
void filter_purge(struct netlink *rules_socket, const struct filter_entry *entry);

/* The interfaces that there are rules for. */
typedef void (*filter_fn)(const char *interface, void *arg);
int filter_each(struct netlink *rules_socket, filter_fn fn, void *arg, struct error *err);

/* The generations that are alive, as marks; and the end of one. */
typedef void (*filter_generation_fn)(uint32_t generation, void *arg);
int filter_each_generation(struct netlink *rules_socket, filter_generation_fn fn, void *arg,
                           struct error *err);
int filter_forget_generation(struct netlink *rules_socket, uint32_t generation, struct error *err);

/* Whether a table of that name is in the namespace of the socket. */
bool filter_has_table(struct netlink *rules_socket, const char *table);

struct admission {
    uint32_t mark; /* whose generation may connect */
    bool ipv6;
    struct six_address to; /* of IPv4: the first four bytes */
    uint8_t protocol;
    uint16_t first_port, last_port; /* host order */
    uint32_t seconds;
};

static inline bool admission_is_range(const struct admission *admission)
{
    return admission->last_port > admission->first_port &&
           !(admission->first_port <= 1 && admission->last_port == UINT16_MAX);
}

/* The same again makes it longer. */
int filter_admit(struct netlink *rules_socket, const struct admission *admission,
                 struct error *err);
