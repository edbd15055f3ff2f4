/* SPDX-License-Identifier: Apache-2.0 */

/* Who is to be told of a process's ports, and of which ones he was told. */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

static int put_monitor(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_monitor *row = arg;
    const struct sql_param who[] = {PARAM_TEXT(row->sandbox_id), PARAM_INT((int64_t)row->pid)};
    const struct sql_param params[] = {
        PARAM_TEXT(row->sandbox_id),
        PARAM_INT((int64_t)row->pid),
        PARAM_INT((int64_t)row->started_ms),
        PARAM_TEXT(row->callback),
        PARAM_INT(row->shape),
    };
    /* Not replaced but made anew: what the last one was told is of no interest to this one. */
    if (sql_run(db, SQL_MONITOR_DELETE, who, 2, "storing a monitor", err) < 0)
        return -1;
    if (sql_run(db, SQL_MONITOR_ADD, params, ARRAY_LEN(params), "storing a monitor", err) == 0)
        return 0;
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_FOREIGNKEY)
        error_set(err, ERROR_SANDBOX_NOT_FOUND, "the sandbox is gone");
    return -1;
}

int store_put_monitor(struct store *store, const struct store_monitor *row, struct error *err)
{
    return store_change(store, put_monitor, (void *)row, err);
}

struct change {
    const char *sandbox_id;
    uint64_t pid;
    unsigned port;
    bool told;
};

static int delete_monitor(struct sql_db *db, void *arg, struct error *err)
{
    const struct change *change = arg;
    const struct sql_param params[] = {PARAM_TEXT(change->sandbox_id),
                                       PARAM_INT((int64_t)change->pid)};
    return sql_run(db, SQL_MONITOR_DELETE, params, 2, "deleting a monitor", err);
}

int store_delete_monitor(struct store *store, const char *sandbox_id, uint64_t pid,
                         struct error *err)
{
    struct change change = {.sandbox_id = sandbox_id, .pid = pid};
    return store_change_removal(store, delete_monitor, &change, err);
}

static int put_port(struct sql_db *db, void *arg, struct error *err)
{
    const struct change *change = arg;
    const struct sql_param params[] = {
        PARAM_TEXT(change->sandbox_id),
        PARAM_INT((int64_t)change->pid),
        PARAM_INT(change->port),
        PARAM_INT(change->told),
    };
    if (sql_run(db, SQL_MONITOR_PORT_PUT, params, ARRAY_LEN(params), "storing a port", err) == 0)
        return 0;
    /* Its monitor was stopped meanwhile. */
    return sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_FOREIGNKEY ? 0 : -1;
}

int store_put_monitor_port(struct store *store, const char *sandbox_id, uint64_t pid, unsigned port,
                           bool told, struct error *err)
{
    struct change change = {.sandbox_id = sandbox_id, .pid = pid, .port = port, .told = told};
    return store_change(store, put_port, &change, err);
}

static int delete_port(struct sql_db *db, void *arg, struct error *err)
{
    const struct change *change = arg;
    const struct sql_param params[] = {
        PARAM_TEXT(change->sandbox_id),
        PARAM_INT((int64_t)change->pid),
        PARAM_INT(change->port),
    };
    return sql_run(db, SQL_MONITOR_PORT_DELETE, params, ARRAY_LEN(params), "forgetting a port",
                   err);
}

int store_delete_monitor_port(struct store *store, const char *sandbox_id, uint64_t pid,
                              unsigned port, struct error *err)
{
    struct change change = {.sandbox_id = sandbox_id, .pid = pid, .port = port};
    return store_change_removal(store, delete_port, &change, err);
}

/* --- reading --- */

struct load {
    struct sql_db *db;
    const struct store_load_monitors *to;
    const char *sandbox_id;
    uint64_t pid;
};

static int load_port(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    return load->to->port(load->to->ctx, load->sandbox_id, load->pid,
                          (unsigned)sqlite3_column_int(row, 0), sqlite3_column_int(row, 1) != 0,
                          err);
}

static int load_monitor(void *ctx, sqlite3_stmt *row, struct error *err)
{
    struct load *load = ctx;
    const struct store_monitor monitor = {
        .sandbox_id = (const char *)sqlite3_column_text(row, 0),
        .pid = (uint64_t)sqlite3_column_int64(row, 1),
        .started_ms = (uint64_t)sqlite3_column_int64(row, 2),
        .callback = (const char *)sqlite3_column_text(row, 3),
        .shape = (unsigned)sqlite3_column_int(row, 4),
    };
    if (load->to->monitor(load->to->ctx, &monitor, err) < 0)
        return -1;
    load->sandbox_id = monitor.sandbox_id;
    load->pid = monitor.pid;
    const struct sql_param params[] = {PARAM_TEXT(monitor.sandbox_id),
                                       PARAM_INT((int64_t)monitor.pid)};
    return sql_each(load->db, SQL_MONITOR_PORTS_OF, params, 2, load_port, load, "loading ports",
                    err);
}

static int load_monitors(struct sql_db *db, void *arg, struct error *err)
{
    struct load load = {.db = db, .to = arg};
    return sql_each(db, SQL_MONITOR_ALL, NULL, 0, load_monitor, &load, "loading monitors", err);
}

int store_load_monitors(struct store *store, const struct store_load_monitors *load,
                        struct error *err)
{
    return store_read(store, load_monitors, (void *)load, err);
}
