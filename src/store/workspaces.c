/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Workspaces, to and from rows. That a sandbox's workspace exists for as long as the sandbox does
 * is settled here, inside one transaction on either side, and not by whoever asked before.
 */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

static int add_workspace(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_workspace *row = arg;
    const struct sql_param params[] = {PARAM_TEXT(row->name), PARAM_INT(row->created_ms),
                                       PARAM_TEXT(row->created_by)};
    if (sql_run(db, SQL_WORKSPACE_ADD, params, 3, "storing a workspace", err) == 0)
        return 0;
    if (sqlite3_extended_errcode(db->handle) == SQLITE_CONSTRAINT_PRIMARYKEY)
        error_set(err, ERROR_ALREADY_EXISTS, "a workspace named \"%s\" exists already", row->name);
    return -1;
}

int store_add_workspace(struct store *store, const struct store_workspace *row, struct error *err)
{
    return store_change(store, add_workspace, (void *)row, err);
}

static int take_count(void *ctx, sqlite3_stmt *row, struct error *err)
{
    *(int64_t *)ctx = sqlite3_column_int64(row, 0);
    return 0;
}

static int delete_workspace(struct sql_db *db, void *arg, struct error *err)
{
    static const char doing[] = "deleting a workspace";
    const char *name = arg;
    const struct sql_param params[] = {PARAM_TEXT(name)};
    int64_t sandboxes = 0;
    if (sql_each(db, SQL_WORKSPACE_SANDBOXES, params, 1, take_count, &sandboxes, doing, err) < 0)
        return -1;
    if (sandboxes > 0)
        return error_set(err, ERROR_WORKSPACE_NOT_EMPTY,
                         "the workspace \"%s\" has %lld sandbox%s: delete them first, or delete "
                         "it with force=true",
                         name, (long long)sandboxes, sandboxes == 1 ? "" : "es");
    int64_t groups = 0;
    if (sql_each(db, SQL_WORKSPACE_GROUPS, params, 1, take_count, &groups, doing, err) < 0)
        return -1;
    if (groups > 0)
        return error_set(err, ERROR_WORKSPACE_NOT_EMPTY,
                         "the workspace \"%s\" has %lld group%s: end them first, or delete it with "
                         "force=true",
                         name, (long long)groups, groups == 1 ? "" : "s");
    if (sql_run(db, SQL_KEY_DELETE_OF, params, 1, doing, err) < 0)
        return -1;
    return sql_run(db, SQL_WORKSPACE_DELETE, params, 1, doing, err);
}

int store_delete_workspace(struct store *store, const char *name, struct error *err)
{
    return store_change_removal(store, delete_workspace, (void *)name, err);
}

static int set_limits(struct sql_db *db, void *arg, struct error *err)
{
    const struct store_workspace *row = arg;
    const struct sql_param params[] = {PARAM_TEXT(row->name), PARAM_TEXT(row->rates),
                                       PARAM_TEXT(row->quotas)};
    return sql_run(db, SQL_WORKSPACE_LIMITS, params, 3, "storing a workspace's limits", err);
}

int store_set_workspace_limits(struct store *store, const char *name, const char *rates,
                               const char *quotas, struct error *err)
{
    struct store_workspace row = {.name = name, .rates = rates, .quotas = quotas};
    return store_change(store, set_limits, &row, err);
}

struct load {
    int (*each)(void *ctx, const struct store_workspace *row, struct error *err);
    void *ctx;
};

static int load_workspace(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    const char *created_by = (const char *)sqlite3_column_text(row, 2);
    const struct store_workspace workspace = {
        .name = (const char *)sqlite3_column_text(row, 0),
        .created_ms = sqlite3_column_int64(row, 1),
        .created_by = created_by == NULL ? "" : created_by,
        .rates = (const char *)sqlite3_column_text(row, 3),
        .quotas = (const char *)sqlite3_column_text(row, 4),
    };
    return load->each(load->ctx, &workspace, err);
}

static int load_workspaces(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_WORKSPACE_ALL, NULL, 0, load_workspace, arg, "loading workspaces", err);
}

int store_load_workspaces(struct store *store,
                          int (*each)(void *ctx, const struct store_workspace *row,
                                      struct error *err),
                          void *ctx, struct error *err)
{
    struct load load = {each, ctx};
    return store_read(store, load_workspaces, &load, err);
}
