/* SPDX-License-Identifier: Apache-2.0 */

/* Which generation of a sandbox's tokens counts, to and from rows. */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

struct generation {
    const char *sandbox_id;
    int64_t number;
};

static int put_generation(struct sql_db *db, void *arg, struct error *err)
{
    const struct generation *row = arg;
    const struct sql_param params[] = {PARAM_TEXT(row->sandbox_id), PARAM_INT(row->number)};
    if (sql_run(db, SQL_TOKEN_GENERATION_PUT, params, ARRAY_LEN(params), "revoking tokens", err) ==
        0)
        return 0;
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_FOREIGNKEY)
        error_set(err, ERROR_SANDBOX_NOT_FOUND, "the sandbox is gone");
    return -1;
}

int store_put_token_generation(struct store *store, const char *sandbox_id, int64_t generation,
                               struct error *err)
{
    struct generation row = {sandbox_id, generation};
    return store_change(store, put_generation, &row, err);
}

struct load {
    int (*each)(void *ctx, const char *sandbox_id, int64_t generation, struct error *err);
    void *ctx;
};

static int load_generation(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    return load->each(load->ctx, (const char *)sqlite3_column_text(row, 0),
                      sqlite3_column_int64(row, 1), err);
}

static int load_generations(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_TOKEN_GENERATION_ALL, NULL, 0, load_generation, arg,
                    "loading which tokens count", err);
}

int store_load_token_generations(struct store *store,
                                 int (*each)(void *ctx, const char *sandbox_id, int64_t generation,
                                             struct error *err),
                                 void *ctx, struct error *err)
{
    struct load load = {each, ctx};
    return store_read(store, load_generations, &load, err);
}
