/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files about pools share: pools.c (which there are), pool_keeper.c (making and removing
 * spares), pool_claim.c (taking one). */

#include <uthash.h>

#include "base/limits.h"
#include "sandbox/pools.h"
#include "sandbox/state.h"

enum spare_state {
    SPARE_MAKING,
    SPARE_READY,
    SPARE_GOING, /* being removed */
};

struct spare {
    char id[SANDBOX_ID_LEN + 1];
    struct pool *pool; /* NULL: of none any more */
    struct pools *pools;
    enum spare_state state;
    struct promise promise; /* it counts for admission like any other */
    int64_t made_ms;        /* by the loop's clock */
    char address[NET_ADDRESS_TEXT];
    char address6[NET_ADDRESS_TEXT];
    struct spare *next; /* READY: the next younger one */
    UT_hash_handle hh;  /* by id */
};

struct pool {
    char *name;
    struct sandbox *model; /* what a spare is made like; in no map */
    char *key;             /* what a create has to have in common with it; see pool_key() */
    size_t key_len;
    char *code; /* what runs in its spares: see ahead_start(); "": nothing */
    int64_t size, ttl_s, at_once;
    int64_t created_ms, updated_ms;
    char created_by[ACTOR_MAX];
    struct spare *oldest, *youngest; /* ready ones */
    int64_t ready, making;
    uint64_t claimed, misses, refills, failures, expired, returned;
    double refill_last_ms, refill_total_ms;
    int64_t retry_ms, retry_at_ms; /* after a failure: the pause, and its end */
    char last_error[ERROR_MESSAGE_MAX];
    UT_hash_handle by_name, by_key;
};

struct pools {
    struct sandboxes *owner;
    struct pool *names; /* by name */
    struct pool *keys;  /* the same, by key */
    struct spare *spares;
    int64_t making;         /* in all pools */
    int64_t quiet_until_ms; /* a claim's first command has the machine for itself until then */
    unsigned busy;          /* coroutines at work on spares */
    bool running, stopping;
    struct co_cond wake, idle;
};

/* What sandboxes that can come from the same pool have in common; to be freed. NULL with the error
 * when there is no plan for it. */
char *pool_key(const struct sandbox *sb, size_t *ret_len, struct error *err);

/* pool_keeper.c */
void pool_push(struct pool *pool, struct spare *spare); /* ready, as the youngest */
struct spare *pool_pop(struct pool *pool);              /* the oldest; NULL: none */
void spare_retire(struct spare *spare); /* a ready one, popped: removes it in the background */
void spare_free(struct spare *spare);
