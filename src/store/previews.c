/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Previews and their tokens, to and from rows. A token is stored as it is and not as a hash: the
 * API shows it again to the preview's owner, because that is how clients take up a session that
 * they did not begin. Whoever reads this file has the server's secrets anyway.
 */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

static int put_preview(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_preview *row = arg;
    const struct sql_param params[] = {
        PARAM_TEXT(row->id),
        PARAM_TEXT(row->sandbox_id),
        PARAM_TEXT(row->name),
        PARAM_INT(row->port),
        PARAM_INT(row->is_public),
        PARAM_INT(row->expires_ms),
        PARAM_INT(row->created_ms),
        PARAM_INT(row->updated_ms),
        PARAM_TEXT(row->created_by),
        PARAM_BYTES(row->request_headers),
        PARAM_BYTES(row->response_headers),
        PARAM_TEXT(row->spec),
    };
    if (row->drops_tokens &&
        sql_run(db, SQL_PREVIEW_TOKENS_DROP, params, 1, "removing a preview's tokens", err) < 0)
        return -1;
    if (sql_run(db, SQL_PREVIEW_PUT, params, ARRAY_LEN(params), "storing a preview", err) == 0)
        return 0;
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_FOREIGNKEY)
        error_set(err, ERROR_SANDBOX_NOT_FOUND, "the sandbox is gone");
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_UNIQUE)
        error_set(err, ERROR_ALREADY_EXISTS, "a preview named \"%s\" exists already", row->name);
    return -1;
}

int store_put_preview(struct store *store, const struct store_preview *row, struct error *err)
{
    return store_change(store, put_preview, (void *)row, err);
}

static int delete_preview(struct sql_db *db, void *arg, struct error *err)
{
    const struct sql_param params[] = {PARAM_TEXT((const char *)arg)};
    return sql_run(db, SQL_PREVIEW_DELETE, params, 1, "deleting a preview", err);
}

int store_delete_preview(struct store *store, const char *id, struct error *err)
{
    return store_change_removal(store, delete_preview, (void *)id, err);
}

struct token_change {
    const char *preview_id;
    const struct store_preview_token *row;
    const char *name;
};

static int put_token(struct sql_db *db, void *arg, struct error *err)
{
    const struct token_change *change = arg;
    const struct sql_param params[] = {
        PARAM_TEXT(change->preview_id),     PARAM_TEXT(change->row->name),
        PARAM_TEXT(change->row->token),     PARAM_INT(change->row->expires_ms),
        PARAM_INT(change->row->created_ms),
    };
    /* Those that have ended make room, here where they could pile up. */
    const struct sql_param ended[] = {PARAM_TEXT(change->preview_id),
                                      PARAM_INT(change->row->created_ms)};
    if (sql_run(db, SQL_PREVIEW_TOKEN_SWEEP, ended, 2, "removing old tokens", err) < 0)
        return -1;
    if (sql_run(db, SQL_PREVIEW_TOKEN_PUT, params, ARRAY_LEN(params), "storing a token", err) == 0)
        return 0;
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_FOREIGNKEY)
        error_set(err, ERROR_PREVIEW_NOT_FOUND, "the preview is gone");
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_PRIMARYKEY)
        error_set(err, ERROR_ALREADY_EXISTS, "a token named \"%s\" exists already",
                  change->row->name);
    return -1;
}

int store_put_preview_token(struct store *store, const char *preview_id,
                            const struct store_preview_token *row, struct error *err)
{
    struct token_change change = {.preview_id = preview_id, .row = row};
    return store_change(store, put_token, &change, err);
}

static int delete_token(struct sql_db *db, void *arg, struct error *err)
{
    const struct token_change *change = arg;
    const struct sql_param params[] = {PARAM_TEXT(change->preview_id), PARAM_TEXT(change->name)};
    return sql_run(db, SQL_PREVIEW_TOKEN_DELETE, params, 2, "deleting a token", err);
}

int store_delete_preview_token(struct store *store, const char *preview_id, const char *name,
                               struct error *err)
{
    struct token_change change = {.preview_id = preview_id, .name = name};
    return store_change_removal(store, delete_token, &change, err);
}

/* --- reading --- */

struct load {
    struct sql_db *db;
    const struct store_load_previews *to;
    const char *id; /* of the preview whose tokens come */
};

static const char *text(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static struct slice bytes(sqlite3_stmt *row, int column)
{
    const char *data = sqlite3_column_blob(row, column);
    return (struct slice){data, (size_t)sqlite3_column_bytes(row, column)};
}

static int load_token(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    const struct store_preview_token token = {
        .name = text(row, 0),
        .token = text(row, 1),
        .expires_ms = sqlite3_column_int64(row, 2),
        .created_ms = sqlite3_column_int64(row, 3),
    };
    return load->to->token(load->to->ctx, load->id, &token, err);
}

static int load_preview(void *ctx, sqlite3_stmt *row, struct error *err)
{
    struct load *load = ctx;
    const struct store_preview preview = {
        .id = text(row, 0),
        .sandbox_id = text(row, 1),
        .name = text(row, 2),
        .port = (unsigned)sqlite3_column_int(row, 3),
        .is_public = sqlite3_column_int(row, 4) != 0,
        .expires_ms = sqlite3_column_int64(row, 5),
        .created_ms = sqlite3_column_int64(row, 6),
        .updated_ms = sqlite3_column_int64(row, 7),
        .created_by = text(row, 8),
        .request_headers = bytes(row, 9),
        .response_headers = bytes(row, 10),
        .spec = text(row, 11),
    };
    if (load->to->preview(load->to->ctx, &preview, err) < 0)
        return -1;
    load->id = preview.id;
    const struct sql_param params[] = {PARAM_TEXT(preview.id)};
    return sql_each(load->db, SQL_PREVIEW_TOKENS_OF, params, 1, load_token, load, "loading tokens",
                    err);
}

static int load_previews(struct sql_db *db, void *arg, struct error *err)
{
    struct load load = {db, arg, NULL};
    return sql_each(db, SQL_PREVIEW_ALL, NULL, 0, load_preview, &load, "loading previews", err);
}

int store_load_previews(struct store *store, const struct store_load_previews *load,
                        struct error *err)
{
    return store_read(store, load_previews, (void *)load, err);
}
