/* SPDX-License-Identifier: Apache-2.0 */

/*
 * API keys, to and from rows. What is stored is a hash: the database gives no key away. The secrets
 * that the server signs with are its own, and are as private as the file.
 */

#include "store/store.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/state.h"

static int put_key(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_key *key = arg;
    const struct sql_param params[] = {
        PARAM_TEXT(key->id),          PARAM_TEXT(key->hash),       PARAM_TEXT(key->hint),
        PARAM_TEXT(key->name),        PARAM_TEXT(key->workspace),  PARAM_INT((int64_t)key->scopes),
        PARAM_INT(key->created_ms),   PARAM_TEXT(key->created_by), PARAM_INT(key->expires_ms),
        PARAM_INT(key->last_used_ms), PARAM_TEXT(key->issuer)};
    if (sql_run(db, SQL_KEY_PUT, params, ARRAY_LEN(params), "storing an API key", err) == 0)
        return 0;
    int why = sqlite3_extended_errcode(db->handle);
    if (why == SQLITE_CONSTRAINT_UNIQUE)
        error_set(err, ERROR_ALREADY_EXISTS, "a key named \"%s\" exists in the workspace \"%s\"",
                  key->name, key->workspace);
    else if (why == SQLITE_CONSTRAINT_FOREIGNKEY)
        error_set(err, ERROR_WORKSPACE_NOT_FOUND, "there is no workspace \"%s\"", key->workspace);
    return -1;
}

int store_put_key(struct store *store, const struct store_key *key, struct error *err)
{
    return store_change(store, put_key, (void *)key, err);
}

static int delete_key(struct sql_db *db, void *arg, struct error *err)
{
    const struct sql_param params[] = {PARAM_TEXT((const char *)arg)};
    return sql_run(db, SQL_KEY_DELETE, params, 1, "deleting an API key", err);
}

int store_delete_key(struct store *store, const char *id, struct error *err)
{
    return store_change_removal(store, delete_key, (void *)id, err);
}

struct use {
    const char *id;
    int64_t when_ms;
};

static int use_key(struct sql_db *db, void *arg, struct error *err)
{
    const struct use *use = arg;
    const struct sql_param params[] = {PARAM_TEXT(use->id), PARAM_INT(use->when_ms)};
    return sql_run(db, SQL_KEY_USED, params, 2, "noting the use of an API key", err);
}

int store_use_key(struct store *store, const char *id, int64_t when_ms, struct error *err)
{
    struct use use = {id, when_ms};
    return store_change(store, use_key, &use, err);
}

/* --- loading --- */

struct load {
    int (*each)(void *ctx, const struct store_key *key, struct error *err);
    void *ctx;
};

static void take_text(sqlite3_stmt *row, int column, char *out, size_t size)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    snprintf(out, size, "%s", text == NULL ? "" : (const char *)text);
}

static int load_key(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    struct store_key key = {
        .scopes = (unsigned)sqlite3_column_int64(row, 5),
        .created_ms = sqlite3_column_int64(row, 6),
        .expires_ms = sqlite3_column_int64(row, 8),
        .last_used_ms = sqlite3_column_int64(row, 9),
    };
    take_text(row, 0, key.id, sizeof(key.id));
    take_text(row, 1, key.hash, sizeof(key.hash));
    take_text(row, 2, key.hint, sizeof(key.hint));
    take_text(row, 3, key.name, sizeof(key.name));
    take_text(row, 4, key.workspace, sizeof(key.workspace));
    take_text(row, 7, key.created_by, sizeof(key.created_by));
    take_text(row, 10, key.issuer, sizeof(key.issuer));
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

/* --- the server's own secrets --- */

struct secret {
    const char *name;
    void *bytes;
    size_t len;
};

static int take_secret(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct secret *secret = ctx;
    const void *bytes = sqlite3_column_blob(row, 0);
    if ((size_t)sqlite3_column_bytes(row, 0) != secret->len)
        return error_set(err, ERROR_INTERNAL, "the secret \"%s\" in the database has a wrong size",
                         secret->name);
    memcpy(secret->bytes, bytes, secret->len);
    return 0;
}

static int settle_secret(struct sql_db *db, void *arg, struct error *err)
{
    struct secret *secret = arg;
    struct slice bytes = {secret->bytes, secret->len};
    const struct sql_param offer[] = {PARAM_TEXT(secret->name), PARAM_BYTES(bytes)};
    if (sql_run(db, SQL_SECRET_OFFER, offer, 2, "storing a secret", err) < 0)
        return -1;
    return sql_each(db, SQL_SECRET_GET, offer, 1, take_secret, secret, "loading a secret", err);
}

int store_secret(struct store *store, const char *name, void *bytes, size_t len, struct error *err)
{
    struct secret secret = {name, bytes, len};
    return store_change(store, settle_secret, &secret, err);
}
