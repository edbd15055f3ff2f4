/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Secrets of workspaces, and certificate authorities of sandboxes, to and from rows. What is here
 * is sealed before it comes and opened after it is gone: this folder never sees a value.
 */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

static struct slice column_bytes(sqlite3_stmt *row, int column)
{
    const char *data = sqlite3_column_blob(row, column);
    return (struct slice){data, (size_t)sqlite3_column_bytes(row, column)};
}

/* --- secrets --- */

static int put_secret(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_workspace_secret *row = arg;
    const struct sql_param params[] = {
        PARAM_TEXT(row->workspace),  PARAM_TEXT(row->name),       PARAM_BYTES(row->sealed),
        PARAM_BYTES(row->hosts),     PARAM_INT(row->created_ms),  PARAM_INT(row->updated_ms),
        PARAM_TEXT(row->created_by), PARAM_TEXT(row->updated_by), PARAM_INT((int64_t)row->version),
        PARAM_TEXT(row->metadata),
    };
    if (sql_run(db, SQL_STORED_SECRET_PUT, params, ARRAY_LEN(params), "storing a secret", err) == 0)
        return 0;
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_FOREIGNKEY)
        error_set(err, ERROR_WORKSPACE_NOT_FOUND, "there is no workspace \"%s\"", row->workspace);
    return -1;
}

int store_put_workspace_secret(struct store *store, const struct store_workspace_secret *row,
                               struct error *err)
{
    return store_change(store, put_secret, (void *)row, err);
}

static int delete_secret(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_workspace_secret *row = arg;
    const struct sql_param params[] = {PARAM_TEXT(row->workspace), PARAM_TEXT(row->name)};
    return sql_run(db, SQL_STORED_SECRET_DELETE, params, ARRAY_LEN(params), "deleting a secret",
                   err);
}

int store_delete_workspace_secret(struct store *store, const char *workspace, const char *name,
                                  struct error *err)
{
    struct store_workspace_secret row = {.workspace = workspace, .name = name};
    return store_change_removal(store, delete_secret, &row, err);
}

struct load_secrets {
    int (*each)(void *ctx, const struct store_workspace_secret *row, struct error *err);
    void *ctx;
};

static int load_secret(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load_secrets *load = ctx;
    const struct store_workspace_secret secret = {
        .workspace = (const char *)sqlite3_column_text(row, 0),
        .name = (const char *)sqlite3_column_text(row, 1),
        .sealed = column_bytes(row, 2),
        .hosts = column_bytes(row, 3),
        .created_ms = sqlite3_column_int64(row, 4),
        .updated_ms = sqlite3_column_int64(row, 5),
        .created_by = (const char *)sqlite3_column_text(row, 6),
        .updated_by = (const char *)sqlite3_column_text(row, 7),
        .version = (uint64_t)sqlite3_column_int64(row, 8),
        .metadata = (const char *)sqlite3_column_text(row, 9),
    };
    return load->each(load->ctx, &secret, err);
}

static int load_secrets(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_STORED_SECRET_ALL, NULL, 0, load_secret, arg, "loading secrets", err);
}

int store_load_workspace_secrets(struct store *store,
                                 int (*each)(void *ctx, const struct store_workspace_secret *row,
                                             struct error *err),
                                 void *ctx, struct error *err)
{
    struct load_secrets load = {each, ctx};
    return store_read(store, load_secrets, &load, err);
}

/* --- certificate authorities --- */

static int put_ca(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_sandbox_ca *row = arg;
    const struct sql_param params[] = {PARAM_TEXT(row->sandbox_id), PARAM_TEXT(row->certificate),
                                       PARAM_BYTES(row->sealed_key)};
    if (sql_run(db, SQL_SANDBOX_CA_PUT, params, ARRAY_LEN(params),
                "storing a certificate authority", err) == 0)
        return 0;
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_FOREIGNKEY)
        error_set(err, ERROR_SANDBOX_NOT_FOUND, "the sandbox is gone");
    return -1;
}

int store_put_sandbox_ca(struct store *store, const struct store_sandbox_ca *row, struct error *err)
{
    return store_change(store, put_ca, (void *)row, err);
}

static int delete_ca(struct sql_db *db, void *arg, struct error *err)
{
    const struct sql_param params[] = {PARAM_TEXT((const char *)arg)};
    return sql_run(db, SQL_SANDBOX_CA_DELETE, params, 1, "deleting a certificate authority", err);
}

int store_delete_sandbox_ca(struct store *store, const char *sandbox_id, struct error *err)
{
    return store_change_removal(store, delete_ca, (void *)sandbox_id, err);
}

struct load_cas {
    int (*each)(void *ctx, const struct store_sandbox_ca *row, struct error *err);
    void *ctx;
};

static int load_ca(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load_cas *load = ctx;
    const struct store_sandbox_ca ca = {
        .sandbox_id = (const char *)sqlite3_column_text(row, 0),
        .certificate = (const char *)sqlite3_column_text(row, 1),
        .sealed_key = column_bytes(row, 2),
    };
    return load->each(load->ctx, &ca, err);
}

static int load_cas(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_SANDBOX_CA_ALL, NULL, 0, load_ca, arg,
                    "loading certificate authorities", err);
}

int store_load_sandbox_cas(struct store *store,
                           int (*each)(void *ctx, const struct store_sandbox_ca *row,
                                       struct error *err),
                           void *ctx, struct error *err)
{
    struct load_cas load = {each, ctx};
    return store_read(store, load_cas, &load, err);
}
