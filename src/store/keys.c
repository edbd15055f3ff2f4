/* SPDX-License-Identifier: Apache-2.0 */

/* API keys, to and from rows. What is stored is a hash: the database gives no key away. */

#include "store/store.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "store/state.h"

static int put_key(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_key *key = arg;
    const struct sql_param params[] = {
        PARAM_TEXT(key->hash),           PARAM_TEXT(key->name),      PARAM_TEXT(key->workspace),
        PARAM_INT((int64_t)key->scopes), PARAM_INT(key->created_ms),
    };
    return sql_run(db, SQL_KEY_PUT, params, ARRAY_LEN(params), "storing an API key", err);
}

static int replace_key(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_key *key = arg;
    const struct sql_param params[] = {PARAM_TEXT(key->name)};
    if (sql_run(db, SQL_KEY_FORGET, params, 1, "removing an API key", err) < 0)
        return -1;
    return put_key(db, arg, err);
}

int store_put_key(struct store *store, const struct store_key *key, struct error *err)
{
    return store_change(store, put_key, (void *)key, err);
}

int store_replace_key(struct store *store, const struct store_key *key, struct error *err)
{
    return store_change(store, replace_key, (void *)key, err);
}

struct load {
    int (*each)(void *ctx, const struct store_key *key, struct error *err);
    void *ctx;
};

static int load_key(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    struct store_key key = {
        .scopes = (unsigned)sqlite3_column_int64(row, 3),
        .created_ms = sqlite3_column_int64(row, 4),
    };
    snprintf(key.hash, sizeof(key.hash), "%s", sqlite3_column_text(row, 0));
    snprintf(key.name, sizeof(key.name), "%s", sqlite3_column_text(row, 1));
    snprintf(key.workspace, sizeof(key.workspace), "%s", sqlite3_column_text(row, 2));
    return load->each(load->ctx, &key, err);
}

static int load_keys(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_KEY_ALL, NULL, 0, load_key, arg, "loading API keys", err);
}

int store_load_keys(struct store *store,
                    int (*each)(void *ctx, const struct store_key *key, struct error *err),
                    void *ctx, struct error *err)
{
    struct load load = {each, ctx};
    return store_read(store, load_keys, &load, err);
}
