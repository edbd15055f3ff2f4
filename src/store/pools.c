/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pools and their spares, to and from rows. A spare is on record before anything of it exists and
 * for as long as it does: so whoever looks for leaks knows it, and a server that comes after a
 * crash knows what to remove, or to go on with: one that a sandbox was to come of is a spare until
 * the sandbox is recorded as running (a trigger, in the same transaction).
 */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

static int put_pool(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_pool *row = arg;
    struct slice resources = row->resources.data == NULL ? slice_of("") : row->resources;
    struct slice network = row->network.data == NULL ? slice_of("") : row->network;
    const struct sql_param params[] = {
        PARAM_TEXT(row->name),       PARAM_TEXT(row->image),
        PARAM_TEXT(row->cpu),        PARAM_TEXT(row->memory),
        PARAM_TEXT(row->disk),       PARAM_TEXT(row->trust_level),
        PARAM_TEXT(row->security),   PARAM_INT(row->size),
        PARAM_INT(row->ttl_s),       PARAM_INT(row->at_once),
        PARAM_INT(row->created_ms),  PARAM_INT(row->updated_ms),
        PARAM_TEXT(row->created_by), PARAM_BYTES(resources),
        PARAM_BYTES(network),        PARAM_TEXT(row->code == NULL ? "" : row->code),
    };
    return sql_run(db, SQL_POOL_PUT, params, ARRAY_LEN(params), "storing a pool", err);
}

int store_put_pool(struct store *store, const struct store_pool *row, struct error *err)
{
    return store_change(store, put_pool, (void *)row, err);
}

static int delete_pool(struct sql_db *db, void *arg, struct error *err)
{
    const struct sql_param params[] = {PARAM_TEXT((const char *)arg)};
    return sql_run(db, SQL_POOL_DELETE, params, 1, "deleting a pool", err);
}

int store_delete_pool(struct store *store, const char *name, struct error *err)
{
    return store_change_removal(store, delete_pool, (void *)name, err);
}

struct spare {
    const char *id, *pool;
};

static int add_spare(struct sql_db *db, void *arg, struct error *err)
{
    const struct spare *spare = arg;
    const struct sql_param params[] = {PARAM_TEXT(spare->id), PARAM_TEXT(spare->pool)};
    return sql_run(db, SQL_SPARE_ADD, params, ARRAY_LEN(params), "storing a spare sandbox", err);
}

int store_add_spare(struct store *store, const char *id, const char *pool, struct error *err)
{
    struct spare spare = {id, pool};
    return store_change(store, add_spare, &spare, err);
}

static int delete_spare(struct sql_db *db, void *arg, struct error *err)
{
    const struct sql_param params[] = {PARAM_TEXT((const char *)arg)};
    return sql_run(db, SQL_SPARE_DELETE, params, 1, "forgetting a spare sandbox", err);
}

int store_delete_spare(struct store *store, const char *id, struct error *err)
{
    return store_change_removal(store, delete_spare, (void *)id, err);
}

static int clear_spares(struct sql_db *db, void *arg, struct error *err)
{
    return sql_run(db, SQL_SPARE_CLEAR, NULL, 0, "forgetting spare sandboxes", err);
}

int store_clear_spares(struct store *store, struct error *err)
{
    return store_change_removal(store, clear_spares, NULL, err);
}

/* --- reading --- */

static const char *text(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

struct load_pools {
    int (*each)(void *ctx, const struct store_pool *row, struct error *err);
    void *ctx;
};

static int load_pool(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load_pools *load = ctx;
    const struct store_pool pool = {
        .name = text(row, 0),
        .image = text(row, 1),
        .cpu = text(row, 2),
        .memory = text(row, 3),
        .disk = text(row, 4),
        .trust_level = text(row, 5),
        .security = text(row, 6),
        .size = sqlite3_column_int64(row, 7),
        .ttl_s = sqlite3_column_int64(row, 8),
        .at_once = sqlite3_column_int64(row, 9),
        .created_ms = sqlite3_column_int64(row, 10),
        .updated_ms = sqlite3_column_int64(row, 11),
        .created_by = text(row, 12),
        .resources = {sqlite3_column_blob(row, 13), (size_t)sqlite3_column_bytes(row, 13)},
        .network = {sqlite3_column_blob(row, 14), (size_t)sqlite3_column_bytes(row, 14)},
        .code = text(row, 15),
    };
    return load->each(load->ctx, &pool, err);
}

static int load_pools(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_POOL_ALL, NULL, 0, load_pool, arg, "loading pools", err);
}

int store_load_pools(struct store *store,
                     int (*each)(void *ctx, const struct store_pool *row, struct error *err),
                     void *ctx, struct error *err)
{
    struct load_pools load = {each, ctx};
    return store_read(store, load_pools, &load, err);
}

struct load_spares {
    int (*each)(void *ctx, const char *id, struct error *err);
    void *ctx;
};

static int load_spare(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load_spares *load = ctx;
    return load->each(load->ctx, text(row, 0), err);
}

static int load_spares(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_SPARE_ALL, NULL, 0, load_spare, arg, "loading spare sandboxes", err);
}

int store_load_spares(struct store *store,
                      int (*each)(void *ctx, const char *id, struct error *err), void *ctx,
                      struct error *err)
{
    struct load_spares load = {each, ctx};
    return store_read(store, load_spares, &load, err);
}
