/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A copy of the database while somebody writes to it. VACUUM INTO reads in one transaction, so the
 * copy is of one moment, holds what was committed before and nothing half, and leaves out pages
 * that nobody uses any more: what was deleted is not in it.
 */

#include "store/schema.h"
#include "store/state.h"
#include "store/store.h"

int store_schema_version(void)
{
    return schema_migrations[schema_migration_count - 1].version;
}

static int copy_to(struct sql_db *db, void *arg, struct error *err)
{
    static const char doing[] = "copying the database";
    sqlite3_stmt *statement = NULL;
    int failed = sqlite3_prepare_v2(db->handle, "VACUUM INTO ?", -1, &statement, NULL) ||
                 sqlite3_bind_text(statement, 1, arg, -1, SQLITE_STATIC) ||
                 sqlite3_step(statement) != SQLITE_DONE;
    if (failed)
        sql_error(db->handle, doing, err);
    sqlite3_finalize(statement);
    return failed ? -1 : 0;
}

int store_copy(struct store *store, const char *path, struct error *err)
{
    return store_read(store, copy_to, (void *)path, err);
}
