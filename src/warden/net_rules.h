/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules that are the same for all sandboxes, loaded once by the nft program: in the router's
 * namespace, where sandboxes' packets are judged, and a table of our own in the machine's, which
 * keeps what comes out of the router away from the machine itself. Nothing else there is touched.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "warden/net_six.h"

enum {
    NET_PORT_DNS = 5353,
    NET_PORT_HTTP = 8080,
    NET_PORT_TLS = 8443,
    NET_REFUSALS_GROUP = 1, /* of nflog */
    NET_RULES_TEXT_MAX = 64 * 1024,
};

struct rules_setting {
    uint32_t gateway; /* host order */
    uint32_t range;
    unsigned range_bits;
    const struct six *six; /* NULL: no IPv6 */
    const char *uplink;    /* the machine's end of the cable: "cellaup…" */
    uint32_t uplink_near;  /* the router's address on it */
    const char *instance;
    const char *opened;    /* private prefixes that sandboxes may reach: "10.1.0.0/16,…"; or "" */
    const char *resolvers; /* that egress asks: "10.0.0.2#53,fd00::2#5353,…"; or "" */
    uid_t egress;          /* its user; 0: none */
    bool told;             /* the egress process is told what passes it by, and what is refused */
};

void rules_router(const struct rules_setting *setting, struct buf *out);
void rules_machine(const struct rules_setting *setting, struct buf *out);
void rules_machine_remove(const char *instance, struct buf *out);

/* Has nft carry it out in the network namespace of the descriptor. UNAVAILABLE, with what nft
 * says. */
int rules_load(int network_namespace, const struct buf *text, struct error *err);

/* Whether the text looks like a list of prefixes, or of servers: nothing else reaches nft. */
bool rules_list_valid(const char *text);
