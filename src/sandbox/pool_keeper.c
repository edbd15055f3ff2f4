/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeping pools full. One coroutine, the keeper, looks what is missing and what has become too old,
 * and starts others that make a spare or remove one. It gives way: nothing is made while somebody
 * waits for a sandbox of his own, nor in the moments after a claim, whose first command should have
 * the machine for itself; and never more at once than the pool, and all of them together, may.
 *
 * A spare that is too old is removed once another one is ready in its place, so that those who were
 * made together do not leave an empty pool behind.
 *
 * A spare is recorded before it is made and forgotten after it was removed. Those of a server that
 * was killed are strangers to the next one, which removes them (recover.c): to adopt them would
 * save a few milliseconds each, and hand out agents of a version that may be another one.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/names.h"
#include "loop/co.h"
#include "sandbox/pool_state.h"

enum { RETRY_FIRST_MS = 500, RETRY_MAX_MS = 60 * 1000, REMOVE_TRIES = 600, REMOVE_PAUSE_MS = 50 };

/* --- the queue of ready ones --- */

void pool_push(struct pool *pool, struct spare *spare)
{
    spare->state = SPARE_READY;
    spare->next = NULL;
    if (pool->youngest != NULL)
        pool->youngest->next = spare;
    else
        pool->oldest = spare;
    pool->youngest = spare;
    pool->ready++;
}

struct spare *pool_pop(struct pool *pool)
{
    struct spare *spare = pool->oldest;
    if (spare == NULL)
        return NULL;
    pool->oldest = spare->next;
    if (pool->oldest == NULL)
        pool->youngest = NULL;
    pool->ready--;
    return spare;
}

/* Out of the middle: for one that died. */
static void unlink_ready(struct pool *pool, struct spare *spare)
{
    struct spare *before = NULL;
    for (struct spare *at = pool->oldest; at != spare; at = at->next)
        before = at;
    if (before == NULL) {
        pool_pop(pool);
        return;
    }
    before->next = spare->next;
    if (pool->youngest == spare)
        pool->youngest = before;
    pool->ready--;
}

/* --- removing --- */

void spare_free(struct spare *spare)
{
    admission_release(&spare->pools->owner->admission, &spare->promise);
    HASH_DEL(spare->pools->spares, spare);
    free(spare);
}

static void leave(struct pools *pools)
{
    if (--pools->busy == 0)
        co_cond_wake_all(&pools->idle);
}

/* The provider may be away for a moment, or busy with it. What is never removed stays on record,
 * and is removed by whoever comes next. */
static int remove_spare(const struct spare *spare, struct error *err)
{
    struct sandboxes *s = spare->pools->owner;
    for (int i = 0;; i++) {
        if (s->provider->ops->remove(s->provider, spare->id, err) == 0)
            return store_delete_spare(s->store, spare->id, err);
        if ((err->code != ERROR_UNAVAILABLE && err->code != ERROR_CONFLICT) || i == REMOVE_TRIES ||
            co_sleep(s->loop, REMOVE_PAUSE_MS, err) < 0)
            return -1;
    }
}

static void remover(void *arg)
{
    struct spare *spare = arg;
    struct pools *pools = spare->pools;
    struct error err;
    if (remove_spare(spare, &err) < 0)
        log_error("removing the spare sandbox %s: %s", spare->id, err.message);
    spare_free(spare);
    leave(pools);
}

void spare_retire(struct spare *spare)
{
    struct error err;
    spare->state = SPARE_GOING;
    spare->pool = NULL;
    spare->pools->busy++;
    if (co_spawn(spare->pools->owner->loop, remover, spare, NULL, &err) < 0) {
        log_error("removing the spare sandbox %s: %s", spare->id, err.message);
        leave(spare->pools);
    }
}

/* --- making --- */

static int make_spare(struct spare *spare, struct sandbox *model, const char *pool,
                      const char *code, struct error *err)
{
    struct sandboxes *s = spare->pools->owner;
    struct provider_started started;
    struct plan plan;
    if (admission_check_single(&s->admission, NULL, &model->limits, err) < 0 ||
        admission_reserve(&s->admission, &spare->promise, PROMISE_ALL, &model->limits, err) < 0)
        return -1;
    if (sandbox_plan(model, &plan, err) < 0 || store_add_spare(s->store, spare->id, pool, err) < 0)
        return -1;
    plan.id = plan.hostname = spare->id;
    plan.spare = 1;
    if (plan.network != PLAN_NETWORK_NONE) { /* and nothing that it could reach */
        plan.network = PLAN_NETWORK_ALLOWLIST;
        plan.network_rules = (struct slice){0};
    }
    if (s->provider->ops->start(s->provider, &plan, &started, err) < 0)
        return -1;
    memcpy(spare->address, started.address, sizeof(spare->address));
    memcpy(spare->address6, started.address6, sizeof(spare->address6));
    return ahead_start(s, spare->id, code, err);
}

static void note_made(struct pool *pool, double took_ms)
{
    pool->refills++;
    pool->refill_last_ms = took_ms;
    pool->refill_total_ms += took_ms;
    pool->retry_ms = 0;
    pool->last_error[0] = '\0';
}

static void note_failed(struct pool *pool, int64_t now, const struct error *err)
{
    pool->failures++;
    pool->retry_ms = pool->retry_ms == 0 ? RETRY_FIRST_MS : 2 * pool->retry_ms;
    if (pool->retry_ms > RETRY_MAX_MS)
        pool->retry_ms = RETRY_MAX_MS;
    pool->retry_at_ms = now + pool->retry_ms;
    memcpy(pool->last_error, err->message, sizeof(pool->last_error));
    log_warn("pool %s: making a spare sandbox: %s", pool->name, err->message);
}

static double clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void maker(void *arg)
{
    struct spare *spare = arg;
    struct pools *pools = spare->pools;
    struct sandbox *model = spare->pool->model; /* the pool may go meanwhile */
    struct error err;
    double begun = clock_ms();
    _cleanup_free_ char *code = strdup(spare->pool->code);
    if (code == NULL)
        abort();
    sandbox_hold(model);
    int r = make_spare(spare, model, spare->pool->name, code, &err);
    sandbox_drop(model);
    pools->making--;
    struct pool *pool = spare->pool;
    if (pool != NULL) {
        pool->making--;
        if (r < 0)
            note_failed(pool, loop_now(pools->owner->loop), &err);
        else
            note_made(pool, clock_ms() - begun);
    }
    spare->made_ms = loop_now(pools->owner->loop);
    if (r == 0 && pool != NULL && !pools->stopping && spare->state == SPARE_MAKING &&
        strcmp(code, pool->code) == 0)
        pool_push(pool, spare);
    else
        spare_retire(spare);
    pools_wake(pools->owner);
    leave(pools);
}

static void start_maker(struct pool *pool, struct pools *pools)
{
    struct error err;
    struct spare *spare = calloc(1, sizeof(*spare));
    if (spare == NULL)
        abort();
    random_id(spare->id, SANDBOX_ID_LEN);
    spare->pool = pool;
    spare->pools = pools;
    spare->state = SPARE_MAKING;
    HASH_ADD_STR(pools->spares, id, spare);
    pools->making++;
    pool->making++;
    pools->busy++;
    if (co_spawn(pools->owner->loop, maker, spare, NULL, &err) < 0) {
        note_failed(pool, loop_now(pools->owner->loop), &err);
        pools->making--;
        pool->making--;
        spare_free(spare);
        leave(pools);
    }
}

/* --- the keeper --- */

static int64_t expires_ms(const struct pool *pool)
{
    return pool->oldest == NULL ? INT64_MAX : pool->oldest->made_ms + pool->ttl_s * 1000;
}

/* What is too many, or too old with enough others. */
static void trim(struct pool *pool, int64_t now)
{
    while (pool->ready > pool->size) {
        if (pool->size > 0 && expires_ms(pool) <= now)
            pool->expired++;
        spare_retire(pool_pop(pool));
    }
}

/* How many it is short of; one more than its size while the oldest is to be replaced. */
static int64_t missing(const struct pool *pool, int64_t now)
{
    bool replace = pool->size > 0 && expires_ms(pool) <= now;
    return pool->size + (replace ? 1 : 0) - pool->ready - pool->making;
}

static void sooner(int64_t *next, int64_t at)
{
    if (at < *next)
        *next = at;
}

/* Starts what may be started now, and lowers *next to when that changes by itself. */
static void tend(struct pools *pools, struct pool *pool, int64_t now, int64_t *next)
{
    trim(pool, now);
    while (missing(pool, now) > 0) {
        if (pools->owner->starting > 0 || pool->making >= pool->at_once ||
            pools->making >= POOL_AT_ONCE_MAX)
            return; /* whoever ends, wakes */
        int64_t from = pool->retry_ms > 0 && pool->retry_at_ms > pools->quiet_until_ms
                           ? pool->retry_at_ms
                           : pools->quiet_until_ms;
        if (from > now) {
            sooner(next, from);
            return;
        }
        start_maker(pool, pools);
    }
    if (expires_ms(pool) > now)
        sooner(next, expires_ms(pool));
}

static void keeper(void *arg)
{
    struct pools *pools = arg;
    struct loop *loop = pools->owner->loop;
    struct error err;
    while (!pools->stopping) {
        int64_t now = loop_now(loop), next = INT64_MAX;
        for (struct pool *pool = pools->names; pool != NULL; pool = pool->by_name.next)
            tend(pools, pool, now, &next);
        /* Nothing was woken since we looked: no call above waits. */
        co_cond_wait(loop, &pools->wake, next == INT64_MAX ? -1 : next - now, &err);
    }
    pools->running = false;
    leave(pools);
}

int pools_start(struct sandboxes *s, struct error *err)
{
    struct pools *pools = s->pools;
    if (store_clear_spares(s->store, err) < 0)
        return -1;
    pools->running = true;
    pools->busy++;
    return co_spawn(s->loop, keeper, pools, NULL, err);
}

void pools_wake(struct sandboxes *s)
{
    co_cond_wake_all(&s->pools->wake);
}

enum { STOP_WAIT_MS = 20 * 1000 };

void pools_stop(struct sandboxes *s)
{
    struct pools *pools = s->pools;
    struct spare *spare;
    struct error err;
    pools->stopping = true;
    pools_wake(s);
    for (struct pool *pool = pools->names; pool != NULL; pool = pool->by_name.next)
        while ((spare = pool_pop(pool)) != NULL)
            spare_retire(spare);
    while (pools->busy > 0)
        if (co_cond_wait(s->loop, &pools->idle, STOP_WAIT_MS, &err) < 0)
            break;
}

/* --- what happens to spares --- */

bool pools_know(const struct sandboxes *s, const char *id)
{
    struct spare *spare;
    HASH_FIND_STR(s->pools->spares, id, spare);
    return spare != NULL;
}

void pools_exited(struct sandboxes *s, const char *id)
{
    struct spare *spare;
    HASH_FIND_STR(s->pools->spares, id, spare);
    if (spare == NULL || spare->state != SPARE_READY)
        return; /* whoever makes or removes it finds out */
    log_warn("pool %s: a spare sandbox ended by itself", spare->pool->name);
    unlink_ready(spare->pool, spare);
    spare_retire(spare);
    pools_wake(s);
}

/* --- giving way --- */

/* Whether it could be promised if there were no spares. */
static bool would_do(const struct sandboxes *s, const struct promise *promise,
                     enum promise_kind kind, const struct spec_limits *limits)
{
    struct admission without = s->admission;
    for (const struct pool *pool = s->pools->names; pool != NULL; pool = pool->by_name.next)
        for (const struct spare *at = pool->oldest; at != NULL; at = at->next) {
            struct promise spare = at->promise;
            admission_release(&without, &spare);
        }
    return admission_check(&without, promise, kind, limits, NULL) == 0;
}

static bool give_up_one(struct sandboxes *s)
{
    for (struct pool *pool = s->pools->names; pool != NULL; pool = pool->by_name.next) {
        struct spare *spare = pool_pop(pool);
        if (spare == NULL)
            continue;
        admission_release(&s->admission, &spare->promise); /* it goes in a moment */
        spare_retire(spare);
        pool->retry_ms = RETRY_FIRST_MS;
        pool->retry_at_ms = loop_now(s->loop) + RETRY_FIRST_MS;
        return true;
    }
    return false;
}

int pools_reserve(struct sandboxes *s, struct promise *promise, enum promise_kind kind,
                  const struct spec_limits *limits, struct error *err)
{
    if (admission_reserve(&s->admission, promise, kind, limits, err) == 0)
        return 0;
    if (!would_do(s, promise, kind, limits))
        return -1;
    pools_wake(s); /* others are made when there is room again */
    while (give_up_one(s))
        if (admission_reserve(&s->admission, promise, kind, limits, err) == 0)
            return 0;
    return -1;
}

/* A new provider does not know which of the sandboxes that it found were spare. */
void pools_reconnected(struct sandboxes *s)
{
    struct spare *spare;
    for (struct pool *pool = s->pools->names; pool != NULL; pool = pool->by_name.next)
        while ((spare = pool_pop(pool)) != NULL)
            spare_retire(spare);
    pools_wake(s);
}
