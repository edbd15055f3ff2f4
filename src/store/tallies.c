/* SPDX-License-Identifier: Apache-2.0 */

/* How long sandboxes have run, and how much they were asked, to and from rows. */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

static int put_tally(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_tally *row = arg;
    const struct sql_param params[] = {
        PARAM_TEXT(row->sandbox_id),
        PARAM_INT((int64_t)row->starts),
        PARAM_INT(row->since_ms),
        PARAM_INT(row->seen_ms),
        PARAM_INT(row->ran_ms),
        PARAM_INT((int64_t)row->actions),
        PARAM_INT((int64_t)row->commands),
    };
    return sql_run(db, SQL_TALLY_PUT, params, ARRAY_LEN(params), "storing a tally", err);
}

int store_put_tally(struct store *store, const struct store_tally *row, struct error *err)
{
    return store_change(store, put_tally, (void *)row, err);
}

struct load {
    int (*each)(void *ctx, const struct store_tally *row, struct error *err);
    void *ctx;
};

static int load_tally(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    const struct store_tally tally = {
        .sandbox_id = (const char *)sqlite3_column_text(row, 0),
        .starts = (uint64_t)sqlite3_column_int64(row, 1),
        .since_ms = sqlite3_column_int64(row, 2),
        .seen_ms = sqlite3_column_int64(row, 3),
        .ran_ms = sqlite3_column_int64(row, 4),
        .actions = (uint64_t)sqlite3_column_int64(row, 5),
        .commands = (uint64_t)sqlite3_column_int64(row, 6),
    };
    return load->each(load->ctx, &tally, err);
}

static int load_tallies(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_TALLY_ALL, NULL, 0, load_tally, arg, "loading tallies", err);
}

int store_load_tallies(struct store *store,
                       int (*each)(void *ctx, const struct store_tally *row, struct error *err),
                       void *ctx, struct error *err)
{
    struct load load = {each, ctx};
    return store_read(store, load_tallies, &load, err);
}
