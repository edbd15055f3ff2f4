/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers that nobody else has: ids of requests, traces and spans. Not for secrets. Seeded by the
 * kernel once, so that one costs no system call.
 */

#include <stdint.h>
#include <sys/random.h>

struct id_source { /* start with id_source_init() */
    uint64_t state[2];
};

static inline void id_source_init(struct id_source *ids)
{
    /* Early in a machine's life the kernel may have nothing yet: the address differs, at least. */
    if (getrandom(ids->state, sizeof(ids->state), GRND_NONBLOCK) != sizeof(ids->state))
        ids->state[0] = (uint64_t)(uintptr_t)ids;
    ids->state[1] |= 1; /* never all zeros */
}

/* xoroshiro128+ */
static inline uint64_t id_next(struct id_source *ids)
{
    uint64_t a = ids->state[0], b = ids->state[1], result = a + b;
    b ^= a;
    ids->state[0] = (a << 24 | a >> 40) ^ b ^ (b << 16);
    ids->state[1] = b << 37 | b >> 27;
    return result;
}
