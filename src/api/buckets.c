/* SPDX-License-Identifier: Apache-2.0 */

/* Buckets, by the generic cell rate algorithm: no timer fills them, time passing is all there is.
 */

#include "api/buckets.h"

#include <stdlib.h>

#define SECOND_NS INT64_C(1000000000)

/* What the bucket holds at a time, and whether one more may be taken. */
static struct bucket_state state_of(int64_t full_at, const struct bucket_rate *rate, int64_t now_ns)
{
    const int64_t token = SECOND_NS / rate->per_second, whole = token * rate->burst;
    int64_t ahead = full_at > now_ns ? full_at - now_ns : 0;
    struct bucket_state state = {.full_ns = ahead};
    if (ahead > whole) /* the rate was another one when it was last used */
        ahead = whole;
    state.remaining = (uint32_t)((whole - ahead) / token);
    state.allowed = state.remaining > 0;
    if (!state.allowed)
        state.wait_ns = ahead + token - whole;
    return state;
}

static struct bucket *find(const struct buckets *buckets, const struct bucket_name *name)
{
    struct bucket *bucket;
    HASH_FIND(hh, buckets->items, name, sizeof(*name), bucket);
    return bucket;
}

/* The bucket of that name, which is the one used last from now on. */
static struct bucket *use(struct buckets *buckets, const struct bucket_name *name)
{
    size_t max = buckets->max == 0 ? BUCKETS_MAX : buckets->max;
    struct bucket *bucket = find(buckets, name);
    if (bucket != NULL) {
        HASH_DELETE(hh, buckets->items, bucket);
    } else if (HASH_CNT(hh, buckets->items) >= max) {
        bucket = buckets->items;
        HASH_DELETE(hh, buckets->items, bucket);
        *bucket = (struct bucket){.name = *name};
        buckets->evicted++;
    } else if ((bucket = calloc(1, sizeof(*bucket))) == NULL) {
        abort(); /* a hundred bytes: nothing sensible can go on */
    } else {
        bucket->name = *name;
    }
    HASH_ADD(hh, buckets->items, name, sizeof(bucket->name), bucket);
    return bucket;
}

struct bucket_state buckets_look(const struct buckets *buckets, const struct bucket_name *name,
                                 const struct bucket_rate *rate, int64_t now_ns)
{
    const struct bucket *bucket = find(buckets, name);
    return state_of(bucket == NULL ? 0 : bucket->full_ns, rate, now_ns);
}

struct bucket_state buckets_take(struct buckets *buckets, const struct bucket_name *name,
                                 const struct bucket_rate *rate, int64_t now_ns)
{
    struct bucket *bucket = use(buckets, name);
    struct bucket_state state = state_of(bucket->full_ns, rate, now_ns);
    if (!state.allowed)
        return state;
    int64_t from = bucket->full_ns > now_ns ? bucket->full_ns : now_ns;
    bucket->full_ns = from + SECOND_NS / rate->per_second;
    state.remaining--;
    state.full_ns = bucket->full_ns - now_ns;
    return state;
}

void buckets_release(struct buckets *buckets)
{
    struct bucket *bucket, *next;
    HASH_ITER(hh, buckets->items, bucket, next)
    {
        HASH_DELETE(hh, buckets->items, bucket);
        free(bucket);
    }
}
