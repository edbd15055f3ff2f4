/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who asks when a reverse proxy stands between: the operator names the proxies (--trusted-proxy),
 * and what they write into X-Forwarded-For or Forwarded (RFC 7239) is believed, from nobody else.
 *
 * Each proxy adds the address that it was asked from at the right. So the list is read from there,
 * for as long as the addresses are those of trusted proxies: the first that is not is who asks.
 * What stands further left, anybody may have written.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "http/server.h"
#include "network/address.h"

struct proxies { /* start from a zeroed struct */
    struct net_prefix items[TRUSTED_PROXIES_MAX];
    size_t count;
};

/* "10.0.0.0/8", "192.0.2.7, 2001:db8::/64"; "" adds none. INVALID_ARGUMENT, LIMIT_EXCEEDED. */
int proxies_add(struct proxies *proxies, const char *text, struct error *err);

/*
 * Somebody behind a proxy who cannot be told from others like him: what the proxy wrote is no
 * address, says another thing in each of the two fields, or names this machine, which who asks by
 * way of a proxy is not taken for. He is counted with all of them, and is no local caller.
 */
#define FORWARDED_UNKNOWN "0.0.0.0:0"

/* The peer of the request ("192.0.2.1:4711") as its fields have it, in the arena; the one that was
 * given when that is no trusted proxy, or has said nothing. The port is 0 where none was told. */
const char *forwarded_peer(struct arena *arena, const struct proxies *proxies, const char *peer,
                           const struct http_header *headers, size_t count);

/* Has the exchange know it. proxies NULL: there are none. */
void forwarded_settle(struct http_exchange *x, const struct proxies *proxies);
