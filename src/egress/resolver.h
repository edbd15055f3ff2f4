/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asking name servers. Questions are made here, each with a random id from a socket of its own (so
 * from a random port), and only an answer that fits in both and repeats the question is taken.
 * Addresses are remembered for as long as they say, and several who want the same wait for one
 * question.
 *
 * Nothing here knows of sandboxes or policies. Calls that ask wait, so they are made on coroutines.
 */

#include <uthash.h>

#include "egress/dns_message.h"
#include "loop/loop.h"
#include "network/address.h"

enum { RESOLVER_SERVERS_MAX = 8 };

struct resolver_server {
    struct net_address address;
    uint16_t port;
};

struct resolver { /* start from a zeroed struct, with loop */
    struct loop *loop;
    struct resolver_server servers[RESOLVER_SERVERS_MAX];
    size_t server_count;
    size_t preferred;             /* the one that answered last */
    unsigned asking;              /* questions under way */
    struct resolver_known *known; /* addresses of names */
};

/* "9.9.9.9", "9.9.9.9:5353", "[2620:fe::fe]:53". INVALID_ARGUMENT, LIMIT_EXCEEDED. */
int resolver_add_server(struct resolver *resolver, const char *text, struct error *err);
/* The first nameserver lines of a file as resolv.conf(5) has it; those that make no sense are
 * passed over. None is fine: then nothing is resolved. */
int resolver_read_servers(struct resolver *resolver, const char *path, struct error *err);
/* For people: "9.9.9.9, 1.1.1.1". */
void resolver_describe(const struct resolver *resolver, char *out, size_t size);
void resolver_release(struct resolver *resolver);

/* Whether the answer is known, so that nobody has to be asked. */
bool resolver_knows(const struct resolver *resolver, const char *name, uint16_t type);

/* Addresses of a canonical name; `type` is DNS_A or DNS_AAAA. An answer without addresses, or that
 * there is no such name, is an answer; UPSTREAM_FAILED and TIMEOUT are none. */
int resolver_addresses(struct resolver *resolver, const char *name, uint16_t type,
                       struct dns_answer *ret_answer, struct error *err);

/* Appends the answer to a query of any other type, ready for the client. */
int resolver_records(struct resolver *resolver, const struct dns_query *query, struct buf *out,
                     struct error *err);
