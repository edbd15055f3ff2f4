/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups, to and from rows. A group comes with all of its first sandboxes in one transaction, and
 * goes only when none is left: both are the database's word, so a crash leaves no half of either.
 */

#include "store/store.h"

#include "base/cleanup.h"
#include "store/state.h"

static int put_row(struct sql_db *db, const struct store_group *row, struct error *err)
{
    const struct sql_param params[] = {
        PARAM_TEXT(row->id),        PARAM_TEXT(row->workspace),  PARAM_TEXT(row->name),
        PARAM_TEXT(row->spec),      PARAM_INT(row->ending),      PARAM_INT(row->created_ms),
        PARAM_INT(row->updated_ms), PARAM_TEXT(row->created_by), PARAM_TEXT(row->updated_by),
    };
    if (sql_run(db, SQL_GROUP_PUT, params, ARRAY_LEN(params), "storing a group", err) == 0)
        return 0;
    int why = sqlite3_extended_errcode(db->handle);
    if (why == SQLITE_CONSTRAINT_UNIQUE)
        error_set(err, ERROR_ALREADY_EXISTS, "a group named \"%s\" exists in the workspace \"%s\"",
                  row->name, row->workspace);
    else if (why == SQLITE_CONSTRAINT_TRIGGER) /* the only one there is */
        error_set(err, ERROR_WORKSPACE_NOT_FOUND, "there is no workspace \"%s\"", row->workspace);
    return -1;
}

struct add {
    const struct store_group *row;
    const struct store_sandbox *sandboxes;
    const struct store_event *events;
    size_t count;
};

static int add_group(struct sql_db *db, void *arg, struct error *err)
{
    const struct add *add = arg;
    if (put_row(db, add->row, err) < 0)
        return -1;
    for (size_t i = 0; i < add->count; i++)
        if (store_put_sandbox_in(db, &add->sandboxes[i], &add->events[i], err) < 0)
            return -1;
    return 0;
}

int store_add_group(struct store *store, const struct store_group *row,
                    const struct store_sandbox *sandboxes, const struct store_event *events,
                    size_t count, struct error *err)
{
    struct add add = {row, sandboxes, events, count};
    return store_change(store, add_group, &add, err);
}

static int put_group(struct sql_db *db, void *arg, struct error *err)
{
    return put_row(db, arg, err);
}

int store_put_group(struct store *store, const struct store_group *row, struct error *err)
{
    if (row->ending)
        return store_change_removal(store, put_group, (void *)row, err);
    return store_change(store, put_group, (void *)row, err);
}

static int take_count(void *ctx, sqlite3_stmt *row, struct error *err)
{
    *(int64_t *)ctx = sqlite3_column_int64(row, 0);
    return 0;
}

static int delete_group(struct sql_db *db, void *arg, struct error *err)
{
    static const char doing[] = "deleting a group";
    const struct sql_param params[] = {PARAM_TEXT((const char *)arg)};
    int64_t sandboxes = 0;
    if (sql_each(db, SQL_GROUP_SANDBOXES, params, 1, take_count, &sandboxes, doing, err) < 0)
        return -1;
    if (sandboxes > 0)
        return error_set(err, ERROR_CONFLICT, "the group has %lld sandbox%s", (long long)sandboxes,
                         sandboxes == 1 ? "" : "es");
    return sql_run(db, SQL_GROUP_DELETE, params, 1, doing, err);
}

int store_delete_group(struct store *store, const char *id, struct error *err)
{
    return store_change_removal(store, delete_group, (void *)id, err);
}

/* --- reading --- */

struct load {
    int (*each)(void *ctx, const struct store_group *row, struct error *err);
    void *ctx;
};

static const char *text(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static int load_group(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    const struct store_group group = {
        .id = text(row, 0),
        .workspace = text(row, 1),
        .name = text(row, 2),
        .spec = text(row, 3),
        .ending = sqlite3_column_int(row, 4) != 0,
        .created_ms = sqlite3_column_int64(row, 5),
        .updated_ms = sqlite3_column_int64(row, 6),
        .created_by = text(row, 7),
        .updated_by = text(row, 8),
    };
    return load->each(load->ctx, &group, err);
}

static int load_groups(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_GROUP_ALL, NULL, 0, load_group, arg, "loading groups", err);
}

int store_load_groups(struct store *store,
                      int (*each)(void *ctx, const struct store_group *row, struct error *err),
                      void *ctx, struct error *err)
{
    struct load load = {each, ctx};
    return store_read(store, load_groups, &load, err);
}
