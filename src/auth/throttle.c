/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counting wrong keys. A bucket is one number, the time at which it is full again: a failure moves
 * it on, time passing is all the refill there is, and an entry whose time has come says nothing and
 * can go.
 */

#include "auth/throttle.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct peer_address peer_address(const char *peer)
{
    struct peer_address address = {{0}};
    char text[INET6_ADDRSTRLEN];
    const char *colon = peer == NULL ? NULL : strrchr(peer, ':');
    bool v6 = colon != NULL && peer[0] == '[' && colon[-1] == ']';
    size_t len = colon == NULL ? 0 : (size_t)(colon - peer) - (v6 ? 2 : 0);
    if (len == 0 || len >= sizeof(text))
        return address;
    memcpy(text, peer + (v6 ? 1 : 0), len);
    text[len] = '\0';

    struct in6_addr in6;
    struct in_addr in;
    if (v6 && inet_pton(AF_INET6, text, &in6) == 1) {
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in6);
        memcpy(address.bytes, in6.s6_addr, mapped ? 16 : 8);
        if (!mapped)
            address.bytes[15] = 1; /* ::1 is an address too, and not "none" */
    } else if (!v6 && inet_pton(AF_INET, text, &in) == 1) {
        memset(address.bytes + 10, 0xff, 2); /* as the v4-mapped form has it */
        memcpy(address.bytes + 12, &in, 4);
    }
    return address;
}

bool peer_is_local(const char *peer)
{
    return strncmp(peer, "127.", 4) == 0 || strncmp(peer, "[::1]", 5) == 0 ||
           strncmp(peer, "[::ffff:127.", 12) == 0 || strcmp(peer, "unix") == 0;
}

bool peer_address_eq(struct peer_address a, struct peer_address b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static bool is_counted(struct peer_address address)
{
    return !peer_address_eq(address, (struct peer_address){{0}});
}

int64_t throttle_wait(const struct throttle *throttle, struct peer_address address, int64_t now_ms)
{
    const int64_t capacity = (int64_t)THROTTLE_BURST * THROTTLE_REFILL_MS;
    struct throttle_peer *peer;
    HASH_FIND(hh, throttle->peers, &address, sizeof(address), peer);
    if (peer == NULL)
        return 0;
    int64_t wait = peer->full_ms - now_ms - (capacity - THROTTLE_REFILL_MS);
    return wait > 0 ? wait : 0;
}

void throttle_failed(struct throttle *throttle, struct peer_address address, int64_t now_ms)
{
    const int64_t capacity = (int64_t)THROTTLE_BURST * THROTTLE_REFILL_MS;
    struct throttle_peer *peer;
    if (!is_counted(address))
        return;
    HASH_FIND(hh, throttle->peers, &address, sizeof(address), peer);
    if (peer != NULL) /* it goes to the end of the list */
        HASH_DELETE(hh, throttle->peers, peer);
    else if (HASH_CNT(hh, throttle->peers) >= THROTTLE_PEERS_MAX) {
        peer = throttle->peers;
        HASH_DELETE(hh, throttle->peers, peer);
        *peer = (struct throttle_peer){.address = address};
    } else if ((peer = calloc(1, sizeof(*peer))) == NULL)
        abort(); /* a hundred bytes: nothing sensible can go on */
    peer->address = address;
    if (peer->full_ms < now_ms)
        peer->full_ms = now_ms;
    peer->full_ms += THROTTLE_REFILL_MS;
    if (peer->full_ms > now_ms + capacity) /* who goes on trying waits, but not for ever */
        peer->full_ms = now_ms + capacity;
    HASH_ADD(hh, throttle->peers, address, sizeof(peer->address), peer);
}

void throttle_release(struct throttle *throttle)
{
    struct throttle_peer *peer, *next;
    HASH_ITER(hh, throttle->peers, peer, next)
    {
        HASH_DELETE(hh, throttle->peers, peer);
        free(peer);
    }
}
