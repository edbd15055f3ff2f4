/* SPDX-License-Identifier: Apache-2.0 */

/* Published ports, to and from rows. Their tokens are signed, so there is no secret here. */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

static int put_port(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_port *row = arg;
    const struct sql_param params[] = {
        PARAM_TEXT(row->sandbox_id), PARAM_INT(row->port),       PARAM_TEXT(row->protocol),
        PARAM_TEXT(row->access),     PARAM_INT(row->host_port),  PARAM_TEXT(row->command),
        PARAM_TEXT(row->generation), PARAM_INT(row->created_ms), PARAM_INT(row->updated_ms),
        PARAM_TEXT(row->created_by),
    };
    if (sql_run(db, SQL_PORT_PUT, params, ARRAY_LEN(params), "storing a port", err) == 0)
        return 0;
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_FOREIGNKEY)
        error_set(err, ERROR_SANDBOX_NOT_FOUND, "the sandbox is gone");
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_UNIQUE)
        error_set(err, ERROR_PORT_IN_USE, "another sandbox has port %u of the host",
                  row->host_port);
    return -1;
}

int store_put_port(struct store *store, const struct store_port *row, struct error *err)
{
    return store_change(store, put_port, (void *)row, err);
}

static int delete_port(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_port *row = arg;
    const struct sql_param params[] = {PARAM_TEXT(row->sandbox_id), PARAM_INT(row->port)};
    return sql_run(db, SQL_PORT_DELETE, params, ARRAY_LEN(params), "deleting a port", err);
}

int store_delete_port(struct store *store, const char *sandbox_id, unsigned port, struct error *err)
{
    struct store_port row = {.sandbox_id = sandbox_id, .port = port};
    return store_change_removal(store, delete_port, &row, err);
}

/* --- reading --- */

struct load {
    int (*each)(void *ctx, const struct store_port *row, struct error *err);
    void *ctx;
};

static const char *text(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static int load_port(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    const struct store_port port = {
        .sandbox_id = text(row, 0),
        .port = (unsigned)sqlite3_column_int(row, 1),
        .protocol = text(row, 2),
        .access = text(row, 3),
        .host_port = (unsigned)sqlite3_column_int(row, 4), /* NULL reads as 0 */
        .command = text(row, 5),
        .generation = text(row, 6),
        .created_ms = sqlite3_column_int64(row, 7),
        .updated_ms = sqlite3_column_int64(row, 8),
        .created_by = text(row, 9),
    };
    return load->each(load->ctx, &port, err);
}

static int load_ports(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_PORT_ALL, NULL, 0, load_port, arg, "loading ports", err);
}

int store_load_ports(struct store *store,
                     int (*each)(void *ctx, const struct store_port *row, struct error *err),
                     void *ctx, struct error *err)
{
    struct load load = {each, ctx};
    return store_read(store, load_ports, &load, err);
}
