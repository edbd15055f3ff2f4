/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many wrong keys an address may try. Each has a bucket of THROTTLE_BURST attempts that fills
 * up again, one every THROTTLE_REFILL_MS. The table is bounded: the address that failed longest ago
 * is forgotten first.
 *
 * An IPv6 address counts as its /64, which is what one machine can choose from.
 */

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

enum { THROTTLE_BURST = 20, THROTTLE_REFILL_MS = 3000, THROTTLE_PEERS_MAX = 1024 };

/* Zeroed: a peer that is not counted (a unix socket). */
struct peer_address {
    unsigned char bytes[16];
};

struct throttle_peer {
    struct peer_address address;
    int64_t full_ms; /* when the bucket is full again */
    UT_hash_handle hh;
};

struct throttle {
    struct throttle_peer *peers; /* oldest failure first */
};

/* The address in "127.0.0.1:4711" or "[::1]:4711". */
struct peer_address peer_address(const char *peer);
/* Whether it is a program on this machine: loopback, a unix socket. */
bool peer_is_local(const char *peer);
bool peer_address_eq(struct peer_address a, struct peer_address b);

/* Milliseconds until the address may try again; 0: now. now_ms: of a clock that only goes on. */
int64_t throttle_wait(const struct throttle *throttle, struct peer_address address, int64_t now_ms);
void throttle_failed(struct throttle *throttle, struct peer_address address, int64_t now_ms);
void throttle_release(struct throttle *throttle);
