/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the kernel tells of the sandboxes' router: connections that go past this process (conntrack)
 * and packets that a rule refused (nflog). Pure: bytes of a netlink socket in, events out. The
 * kernel is believed, but part of a refused packet is in them, and that is a stranger's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "network/address.h"

enum kernel_event_kind {
    KERNEL_CONNECTED = 1, /* its first packet has passed */
    KERNEL_CLOSED,        /* both sides of a TCP connection are done; how much it was is not said */
    KERNEL_ENDED,         /* it is forgotten; bytes count */
    KERNEL_REFUSED,
};

struct kernel_event {
    enum kernel_event_kind kind;
    struct net_address from, to; /* as the sandbox sees it */
    uint8_t protocol;            /* as in the IP header */
    uint16_t from_port, to_port; /* 0: there is none */
    bool limit;                  /* KERNEL_REFUSED: too many; else a rule forbids it */
    bool answered;               /* not of TCP, or it got as far as being connected */
    uint64_t out_bytes, in_bytes;
};

/* The word that stands in front of packets that a limit refused. */
#define KERNEL_LIMIT_PREFIX "limit"

/* Calls `each` for every event in what was read from such a socket at once. What makes no sense is
 * left out. */
void kernel_events_read(struct slice bytes,
                        void (*each)(void *ctx, const struct kernel_event *event), void *ctx);
