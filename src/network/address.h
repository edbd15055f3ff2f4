/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Internet addresses, prefixes of them, and the ranges that no sandbox reaches.
 *
 * An address is a plain value. IPv4 addresses in IPv6 clothes (::ffff:192.0.2.1) are IPv4 addresses
 * as soon as they come in here, so that no rule is walked around by spelling.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/slice.h"

enum net_family { NET_IPV4 = 4, NET_IPV6 = 6 };
enum net_protocol { NET_ANY_PROTOCOL = 0, NET_TCP = 6, NET_UDP = 17 }; /* as in the IP header */

struct net_address {
    enum net_family family;
    unsigned char bytes[16]; /* 4 of them for IPv4, the others zero; network order */
};

struct net_prefix {
    struct net_address address; /* nothing is set behind the prefix */
    unsigned bits;
};

enum { NET_ADDRESS_TEXT = 46, NET_PREFIX_TEXT = NET_ADDRESS_TEXT + 4 }; /* with the NUL */

/* From 4 or 16 bytes in network order. */
struct net_address net_address_of(enum net_family family, const void *bytes);
/* false: of another family than IPv4 and IPv6. */
bool net_address_of_socket(const struct sockaddr *from, struct net_address *ret_address);
bool net_address_eq(const struct net_address *a, const struct net_address *b);

/* The usual spelling, and no other: four decimal numbers, or IPv6 without brackets and zone.
 * INVALID_ARGUMENT. See host.h for those that strangers use. */
int net_address_parse(struct slice text, struct net_address *ret_address, struct error *err);
void net_address_text(const struct net_address *address, char out[NET_ADDRESS_TEXT]);

/* "10.0.0.0/8", "2001:db8::/32", "[2001:db8::]/32", or a single address. INVALID_ARGUMENT also when
 * bits behind the prefix are set: whoever wrote that meant something else. */
int net_prefix_parse(struct slice text, struct net_prefix *ret_prefix, struct error *err);
/* A single address goes without its length. */
void net_prefix_text(const struct net_prefix *prefix, char out[NET_PREFIX_TEXT]);
bool net_prefix_has(const struct net_prefix *prefix, const struct net_address *address);
/* Whether all of `inner` lies in `outer`; whether they have an address in common. */
bool net_prefix_within(const struct net_prefix *inner, const struct net_prefix *outer);
bool net_prefix_overlap(const struct net_prefix *a, const struct net_prefix *b);

/* ---- what is cut off ---- */

/* A range that is not the public Internet. */
struct net_range {
    struct net_prefix prefix;
    const char *name;   /* for people: "private", "link-local, metadata services" */
    bool may_be_opened; /* by the operator */
};

extern const struct net_range net_ranges[]; /* for whoever makes kernel rules of them */
extern const size_t net_range_count;

/* The range that holds it, NULL: it is public. In IPv6 all but 2000::/3 is in one, and some of it.
 */
const struct net_range *net_address_range(const struct net_address *address);

/* Private ranges that the operator lets sandboxes reach (--network-allow-private). */
struct net_exceptions {
    struct net_prefix items[NET_EXCEPTIONS_MAX];
    size_t count;
};

/* INVALID_ARGUMENT when it is no prefix, or not part of a range that may be opened; LIMIT_EXCEEDED.
 */
int net_exceptions_add(struct net_exceptions *exceptions, struct slice text, struct error *err);
bool net_exceptions_have(const struct net_exceptions *exceptions,
                         const struct net_address *address);

/* Whether no sandbox may reach it, whatever its policy says. exceptions may be NULL. The machine's
 * own public addresses are forbidden too, but are not known here. */
bool net_address_forbidden(const struct net_address *address,
                           const struct net_exceptions *exceptions);
