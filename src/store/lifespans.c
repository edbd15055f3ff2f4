/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long sandboxes live. In a table of its own, because few have such a row, and because the time
 * of last use changes far more often than everything else that is known of a sandbox.
 */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

int store_write_lifespan(struct sql_db *db, const char *sandbox_id,
                         const struct store_lifespan *row, struct error *err)
{
    const struct sql_param params[] = {
        PARAM_TEXT(sandbox_id),      PARAM_INT(row->ttl_s),      PARAM_INT(row->idle_s),
        PARAM_INT(row->max_age_s),   PARAM_INT(row->expires_ms), PARAM_TEXT(row->on_expire),
        PARAM_INT(row->ttl_from_ms), PARAM_INT(row->active_ms),  PARAM_INT(row->wake),
    };
    return sql_run(db, SQL_LIFESPAN_PUT, params, ARRAY_LEN(params), "storing a life span", err);
}

struct used {
    const char *sandbox_id;
    int64_t active_ms;
};

static int set_used(struct sql_db *db, void *arg, struct error *err)
{
    const struct used *used = arg;
    const struct sql_param params[] = {PARAM_TEXT(used->sandbox_id), PARAM_INT(used->active_ms)};
    return sql_run(db, SQL_LIFESPAN_USED, params, ARRAY_LEN(params), "storing a last use", err);
}

int store_use_sandbox(struct store *store, const char *sandbox_id, int64_t active_ms,
                      struct error *err)
{
    struct used used = {sandbox_id, active_ms};
    return store_change(store, set_used, &used, err);
}

struct load {
    int (*each)(void *ctx, const char *sandbox_id, const struct store_lifespan *row,
                struct error *err);
    void *ctx;
};

static int load_lifespan(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    const struct store_lifespan lifespan = {
        .ttl_s = sqlite3_column_int64(row, 1),
        .idle_s = sqlite3_column_int64(row, 2),
        .max_age_s = sqlite3_column_int64(row, 3),
        .expires_ms = sqlite3_column_int64(row, 4),
        .on_expire = (const char *)sqlite3_column_text(row, 5),
        .ttl_from_ms = sqlite3_column_int64(row, 6),
        .active_ms = sqlite3_column_int64(row, 7),
        .wake = sqlite3_column_int(row, 8) != 0,
    };
    return load->each(load->ctx, (const char *)sqlite3_column_text(row, 0), &lifespan, err);
}

static int load_lifespans(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_LIFESPAN_ALL, NULL, 0, load_lifespan, arg, "loading life spans", err);
}

int store_load_lifespans(struct store *store,
                         int (*each)(void *ctx, const char *sandbox_id,
                                     const struct store_lifespan *row, struct error *err),
                         void *ctx, struct error *err)
{
    struct load load = {each, ctx};
    return store_read(store, load_lifespans, &load, err);
}
