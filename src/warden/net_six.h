/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * IPv6 of sandboxes, for those that ask for it: an address out of a private range beside the IPv4
 * one, translated where that is. Everything is made without it, so that one that does not ask pays
 * nothing; the two ends of a cable get theirs when their sandbox does.
 *
 * No neighbour discovery, no router advertisements, no link-local addresses: each end knows the
 * other's for good, and whatever of that kind a sandbox sends is dropped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct router;

enum { SIX_SIZE = 16, SIX_TEXT = 46, SIX_WHY_MAX = 256 };

struct six_address {
    unsigned char bytes[SIX_SIZE]; /* network order */
};

/* The router's. */
struct six {
    bool on;
    char why[SIX_WHY_MAX]; /* not on: the reason, for people */
    struct six_address range;
    unsigned range_bits;
    struct six_address gateway;
    struct six_address uplink_far,
        uplink_near; /* the machine's and the router's end of its cable */
};

/* "fd12:3456:789a::/64": 8 to 96 bits, in fc00::/7. INVALID_ARGUMENT. */
int six_parse_range(const char *text, struct six_address *ret_range, unsigned *ret_bits,
                    struct error *err);

/* Fills router->six, once the router has its cable and before its rules are loaded. `range` NULL:
 * one that follows from the instance. A machine that cannot is no error: six.why tells. */
void six_open(struct router *router, const char *range, const char *instance);

/* Why sandboxes cannot have IPv6 right now, for people; false: they can. Looks anew, since routes
 * come and go. */
bool six_hindered(const struct router *router, char *why, size_t size);

/* A sandbox's address by its index, and back (-1: nobody's). */
struct six_address six_address(const struct router *router, int index);
int six_index(const struct router *router, const struct six_address *address);
void six_text(const struct six_address *address, char out[SIX_TEXT]);

/* Gives both ends of a sandbox's cable IPv6, or takes it from them; `network_namespace` is the
 * sandbox's, or a process's in it. The same again is fine. UNAVAILABLE. */
int six_enable(struct router *router, int index, int network_namespace, struct error *err);
void six_disable(struct router *router, int index, int network_namespace);

/* Has the machine forward IPv6, where that does no harm. UNAVAILABLE. */
int six_forward(const struct router *router, struct error *err);
