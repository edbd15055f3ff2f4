/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Token buckets for many callers. A bucket is one number, the time at which it is full again: a
 * request moves it on by what one token takes to come back, and is refused when that would be
 * further ahead than the whole bucket takes. The table is bounded: when it is full, the bucket that
 * was used longest ago makes room, whose owner then starts with a full one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

enum { BUCKET_OWNER_SIZE = 24, BUCKETS_MAX = 16384 };

/* Whose, and for what. Bytes that are not used are zero. */
struct bucket_name {
    unsigned char owner[BUCKET_OWNER_SIZE];
    uint32_t what;
};

struct bucket {
    struct bucket_name name;
    int64_t full_ns;
    UT_hash_handle hh;
};

struct buckets {          /* start from a zeroed struct */
    struct bucket *items; /* the one used longest ago first */
    size_t max;           /* 0: BUCKETS_MAX */
    uint64_t evicted;
};

/* So many a second, and so many at once. */
struct bucket_rate {
    uint32_t per_second; /* 0: no limit */
    uint32_t burst;
};

struct bucket_state {
    bool allowed;
    uint32_t remaining;
    int64_t wait_ns; /* until the next one is allowed; 0 when it is */
    int64_t full_ns; /* until the bucket is full */
};

/* Takes one token, if there is one. now_ns: of a clock that only goes on. */
struct bucket_state buckets_take(struct buckets *buckets, const struct bucket_name *name,
                                 const struct bucket_rate *rate, int64_t now_ns);
/* The same without taking. */
struct bucket_state buckets_look(const struct buckets *buckets, const struct bucket_name *name,
                                 const struct bucket_rate *rate, int64_t now_ns);
void buckets_release(struct buckets *buckets);
