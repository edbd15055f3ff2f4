/* SPDX-License-Identifier: Apache-2.0 */

/* Which pools there are. A pool keeps a model, a sandbox that is never made: its plan is what the
 * spares are made by, whatever a sandbox consists of. */

#include "sandbox/pools.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/names.h"
#include "base/timetext.h"
#include "sandbox/create.h"
#include "sandbox/pool_state.h"

/* --- life --- */

int pools_new(struct sandboxes *s, struct error *err)
{
    s->pools = calloc(1, sizeof(*s->pools));
    if (s->pools == NULL)
        return error_sys(err, "allocating");
    s->pools->owner = s;
    return 0;
}

static void pool_free(struct pool *pool)
{
    if (pool->model != NULL)
        sandbox_drop(pool->model);
    free(pool->name);
    free(pool->key);
    free(pool->code);
    free(pool);
}

static void take_out(struct pools *pools, struct pool *pool)
{
    HASH_DELETE(by_name, pools->names, pool);
    HASH_DELETE(by_key, pools->keys, pool);
}

void pools_free(struct sandboxes *s)
{
    struct pools *pools = s->pools;
    if (pools == NULL)
        return;
    while (pools->names != NULL) {
        struct pool *pool = pools->names;
        take_out(pools, pool);
        pool_free(pool);
    }
    while (pools->spares != NULL)
        spare_free(pools->spares);
    free(pools);
    s->pools = NULL;
}

/* --- from a row to a pool --- */

static struct sandbox *model_new(struct sandboxes *s, const struct store_pool *row,
                                 struct error *err)
{
    const struct store_sandbox model = {
        .id = "",
        .workspace = "",
        .name = "",
        .status = sandbox_status_text(SANDBOX_CREATING),
        .image = row->image,
        .cpu = row->cpu,
        .memory = row->memory,
        .disk = row->disk,
        .resources = row->resources,
        .enabled = true,
        .trust_level = row->trust_level,
        .security = row->security,
        .network = row->network,
    };
    return sandbox_new(s, &model, err);
}

static int fill(struct pool *pool, struct sandboxes *s, const struct store_pool *row,
                struct error *err)
{
    pool->size = row->size;
    pool->ttl_s = row->ttl_s;
    pool->at_once = row->at_once;
    pool->created_ms = row->created_ms;
    pool->updated_ms = row->updated_ms;
    snprintf(pool->created_by, sizeof(pool->created_by), "%s", row->created_by);
    pool->name = strdup(row->name);
    pool->code = strdup(row->code == NULL ? "" : row->code);
    if (pool->name == NULL || pool->code == NULL)
        return error_sys(err, "allocating a pool");
    pool->model = model_new(s, row, err);
    if (pool->model == NULL)
        return -1;
    pool->key = pool_key(pool->model, &pool->key_len, err);
    return pool->key == NULL ? -1 : 0;
}

static int check_place(struct pools *pools, const struct pool *pool, struct error *err)
{
    struct pool *other;
    HASH_FIND(by_name, pools->names, pool->name, strlen(pool->name), other);
    if (other != NULL)
        return error_set(err, ERROR_ALREADY_EXISTS, "a pool named \"%s\" exists already",
                         pool->name);
    HASH_FIND(by_key, pools->keys, pool->key, pool->key_len, other);
    if (other != NULL)
        return error_set(err, ERROR_ALREADY_EXISTS,
                         "the pool \"%s\" is for the same image and trust level: change its size "
                         "instead",
                         other->name);
    if (HASH_CNT(by_name, pools->names) >= POOLS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "there are %d pools already", POOLS_MAX);
    return 0;
}

static int by_name(const struct pool *a, const struct pool *b)
{
    return strcmp(a->name, b->name);
}

static struct pool *add(struct sandboxes *s, const struct store_pool *row, struct error *err)
{
    struct pools *pools = s->pools;
    struct pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        error_sys(err, "allocating a pool");
        return NULL;
    }
    if (fill(pool, s, row, err) < 0 || check_place(pools, pool, err) < 0) {
        pool_free(pool);
        return NULL;
    }
    HASH_ADD_KEYPTR(by_name, pools->names, pool->name, strlen(pool->name), pool);
    HASH_ADD_KEYPTR(by_key, pools->keys, pool->key, pool->key_len, pool);
    HASH_SRT(by_name, pools->names, by_name);
    return pool;
}

static int load_pool(void *ctx, const struct store_pool *row, struct error *err)
{
    if (add(ctx, row, err) == NULL)
        return error_prefix(err, "pool %s in the database", row->name);
    return 0;
}

static int load_spare(void *ctx, const char *id, struct error *err)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    if (sb != NULL)
        sb->unclaimed = true;
    return 0;
}

int pools_load(struct sandboxes *s, struct error *err)
{
    return store_load_pools(s->store, load_pool, s, err) < 0
               ? -1
               : store_load_spares(s->store, load_spare, s, err);
}

/* --- showing --- */

static void pool_info(const struct pool *pool, struct arena *arena, struct pool_info *ret_info)
{
    const struct sandbox *model = pool->model;
    *ret_info = (struct pool_info){
        .name = arena_strdup(arena, pool->name),
        .image = arena_strdup(arena, model->image),
        .resources = resources_arena(&model->resources, arena),
        .security = model->security,
        .network = model->network.mode,
        .code = arena_strdup(arena, pool->code),
        .size = pool->size,
        .ttl_s = pool->ttl_s,
        .at_once = pool->at_once,
        .created_ms = pool->created_ms,
        .updated_ms = pool->updated_ms,
        .created_by = arena_strdup(arena, pool->created_by),
        .ready = pool->ready,
        .making = pool->making,
        .claimed = pool->claimed,
        .misses = pool->misses,
        .refills = pool->refills,
        .failures = pool->failures,
        .expired = pool->expired,
        .returned = pool->returned,
        .refill_last_ms = pool->refill_last_ms,
        .refill_mean_ms = pool->refills == 0 ? 0 : pool->refill_total_ms / (double)pool->refills,
        .oldest_age_ms =
            pool->oldest == NULL ? -1 : loop_now(model->owner->loop) - pool->oldest->made_ms,
        .last_error = pool->last_error[0] == '\0' ? NULL : arena_strdup(arena, pool->last_error),
    };
}

static struct pool *find(const struct sandboxes *s, const char *name, struct error *err)
{
    struct pool *pool;
    HASH_FIND(by_name, s->pools->names, name, strlen(name), pool);
    if (pool == NULL)
        error_set(err, ERROR_POOL_NOT_FOUND, "there is no pool \"%.63s\"", name);
    return pool;
}

int pools_get(struct sandboxes *s, const char *name, struct arena *arena,
              struct pool_info *ret_info, struct error *err)
{
    const struct pool *pool = find(s, name, err);
    if (pool == NULL)
        return -1;
    pool_info(pool, arena, ret_info);
    return 0;
}

void pools_list(struct sandboxes *s, struct arena *arena, struct pool_info **ret_items,
                size_t *ret_count)
{
    size_t count = 0;
    struct pool_info *items =
        arena_alloc(arena, (HASH_CNT(by_name, s->pools->names) + 1) * sizeof(*items));
    for (const struct pool *pool = s->pools->names; pool != NULL; pool = pool->by_name.next)
        pool_info(pool, arena, &items[count++]);
    *ret_items = items;
    *ret_count = count;
}

/* --- changing --- */

static const struct number {
    const char *name;
    int64_t min, max, fallback;
} size_number = {"size", 0, POOL_SIZE_MAX, POOL_SIZE_DEFAULT},
  ttl_number = {"ttl", POOL_TTL_MIN_S, POOL_TTL_MAX_S, POOL_TTL_DEFAULT_S},
  at_once_number = {"refill.concurrency", 1, POOL_AT_ONCE_MAX, POOL_AT_ONCE_DEFAULT};

static int take_number(const struct number *number, const int64_t *given, int64_t *value,
                       struct error *err)
{
    if (given == NULL)
        return 0;
    if (*given < number->min || *given > number->max)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: %lld is not between %lld and %lld%s",
                         number->name, (long long)*given, (long long)number->min,
                         (long long)number->max, number == &ttl_number ? " seconds" : "");
    *value = *given;
    return 0;
}

/* "code-interpreter-untrusted" of "registry.example/code-interpreter:latest" and its level. */
static void make_name(const char *image, enum trust_level level, char name[NAME_MAX_LEN + 1])
{
    const char *slash = strrchr(image, '/');
    size_t len = 0, most = NAME_MAX_LEN - 16;
    for (const char *at = slash == NULL ? image : slash + 1; *at != '\0' && *at != ':'; at++)
        if (len < most && (isalnum((unsigned char)*at) || (*at == '-' && len > 0)))
            name[len++] = (char)tolower((unsigned char)*at);
    while (len > 0 && name[len - 1] == '-')
        len--;
    snprintf(name + len, NAME_MAX_LEN + 1 - len, "%s%s", level == TRUST_STANDARD ? "" : "-",
             level == TRUST_STANDARD ? "" : trust_level_text(level));
}

/* What is stopped after a time can not wait for somebody. */
static int check_code(struct sandboxes *s, const char *code, const struct trust_options *security,
                      struct error *err)
{
    if (code == NULL || code[0] == '\0')
        return 0;
    if (trust_timeout_ms(security, 0) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "code: commands of this trust level end after %llu s, interpreters too: "
                         "they can not be started ahead",
                         (unsigned long long)trust_timeout_ms(security, 0) / 1000);
    return ahead_check(s, code, err) < 0 ? error_prefix(err, "code") : 0;
}

static int read_request(struct sandboxes *s, const struct pool_create *request, struct arena *arena,
                        struct store_pool *row, struct error *err)
{
    const struct sandbox_create like = {.name = request->name,
                                        .image = request->image,
                                        .resources = request->resources,
                                        .security = request->security,
                                        .network = request->network};
    struct store_sandbox model;
    enum trust_level level;
    if (sandbox_create_row(s, &like, arena, &model, err) < 0 ||
        trust_level_parse(model.trust_level, &level, err) < 0)
        return -1;
    *row = (struct store_pool){
        .name = request->name,
        .image = model.image,
        .cpu = model.cpu,
        .memory = model.memory,
        .disk = model.disk,
        .resources = model.resources,
        .trust_level = model.trust_level,
        .security = model.security,
        .network = model.network,
        .code = request->code,
        .size = size_number.fallback,
        .ttl_s = ttl_number.fallback,
        .at_once = at_once_number.fallback,
        .created_by = request->actor,
    };
    if (row->name == NULL) {
        char *name = arena_alloc(arena, NAME_MAX_LEN + 1);
        make_name(row->image, level, name);
        row->name = name;
    }
    row->created_ms = row->updated_ms = time_now_ms();
    if (name_check(row->name, err) < 0 ||
        take_number(&size_number, request->size, &row->size, err) < 0 ||
        take_number(&ttl_number, request->ttl_s, &row->ttl_s, err) < 0)
        return -1;
    return take_number(&at_once_number, request->at_once, &row->at_once, err);
}

int pools_create(struct sandboxes *s, const struct pool_create *request, struct arena *arena,
                 struct pool_info *ret_info, struct error *err)
{
    struct store_pool row;
    if (read_request(s, request, arena, &row, err) < 0)
        return -1;
    struct pool *pool = add(s, &row, err);
    if (pool == NULL)
        return -1;
    if (check_code(s, row.code, &pool->model->security, err) < 0) {
        take_out(s->pools, pool);
        pool_free(pool);
        return -1;
    }
    pool_info(pool, arena, ret_info);
    if (store_put_pool(s->store, &row, err) < 0) {
        pools_delete(s, row.name, NULL);
        return -1;
    }
    pools_wake(s);
    return 0;
}

static void row_of(const struct pool *pool, struct arena *arena, struct store_pool *row)
{
    struct pool_info info;
    pool_info(pool, arena, &info);
    *row = (struct store_pool){.name = info.name,
                               .image = info.image,
                               .cpu = info.resources.cpu,
                               .memory = info.resources.memory,
                               .disk = info.resources.disk,
                               .resources = resources_pack(&info.resources, arena),
                               .trust_level = trust_level_text(info.security.level),
                               .security = trust_text(&info.security, arena),
                               .code = info.code,
                               .size = info.size,
                               .ttl_s = info.ttl_s,
                               .at_once = info.at_once,
                               .created_ms = info.created_ms,
                               .updated_ms = info.updated_ms,
                               .created_by = info.created_by};
}

/* Spares that have something else running are replaced; those that are being made see it, too. */
static void set_code(struct pool *pool, const char *code)
{
    struct spare *spare;
    if (strcmp(pool->code, code) == 0)
        return;
    free(pool->code);
    pool->code = strdup(code);
    if (pool->code == NULL)
        abort();
    while ((spare = pool_pop(pool)) != NULL)
        spare_retire(spare);
}

int pools_update(struct sandboxes *s, const char *name, const struct pool_update *request,
                 struct arena *arena, struct pool_info *ret_info, struct error *err)
{
    struct store_pool row;
    struct pool *pool = find(s, name, err);
    if (pool == NULL)
        return -1;
    row_of(pool, arena, &row);
    if (take_number(&size_number, request->size, &row.size, err) < 0 ||
        take_number(&ttl_number, request->ttl_s, &row.ttl_s, err) < 0 ||
        take_number(&at_once_number, request->at_once, &row.at_once, err) < 0 ||
        check_code(s, request->code, &pool->model->security, err) < 0)
        return -1;
    if (request->code != NULL)
        row.code = request->code;
    row.updated_ms = time_now_ms();
    if (store_put_pool(s->store, &row, err) < 0)
        return -1;
    pool = find(s, name, err); /* somebody may have deleted it meanwhile */
    if (pool == NULL) {
        store_delete_pool(s->store, row.name, NULL);
        return -1;
    }
    pool->size = row.size;
    pool->ttl_s = row.ttl_s;
    pool->at_once = row.at_once;
    pool->updated_ms = row.updated_ms;
    pool->retry_ms = 0;
    set_code(pool, row.code);
    pools_wake(s);
    pool_info(pool, arena, ret_info);
    return 0;
}

int pools_delete(struct sandboxes *s, const char *name, struct error *err)
{
    struct pool *pool = find(s, name, err);
    if (pool == NULL)
        return -1;
    struct spare *spare, *next;
    take_out(s->pools, pool);
    while ((spare = pool_pop(pool)) != NULL)
        spare_retire(spare);
    HASH_ITER(hh, s->pools->spares, spare, next)
    {
        if (spare->pool == pool)
            spare->pool = NULL; /* its maker removes it */
    }
    char *kept = steal_ptr(pool->name);
    pool_free(pool);
    int r = store_delete_pool(s->store, kept, err);
    free(kept);
    return r;
}

int pools_ensure(struct sandboxes *s, const struct pool_create *request, struct error *err)
{
    struct arena *arena = arena_new();
    struct pool_info info;
    struct store_pool row;
    const struct pool_update update = {request->size, request->ttl_s, request->at_once,
                                       request->code};
    int r = read_request(s, request, arena, &row, err);
    if (r == 0)
        r = find(s, row.name, NULL) != NULL ? pools_update(s, row.name, &update, arena, &info, err)
                                            : pools_create(s, request, arena, &info, err);
    arena_free(arena);
    return r;
}
