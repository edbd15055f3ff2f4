/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The statements of this folder, and running them. Each is prepared on its first use and kept. A
 * statement's parameters are given as a list, in order; what SQLite says when it fails becomes our
 * error here and nowhere else.
 */

#include <stdint.h>

#include <sqlite3.h>

#include "base/error.h"
#include "base/slice.h"

enum sql {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_PAGE_COUNT,
    SQL_PAGE_SIZE,
    SQL_SANDBOX_PUT,
    SQL_SANDBOX_DELETE,
    SQL_SANDBOX_STOP_ALL,
    SQL_SANDBOX_ALL,
    SQL_EVENT_ADD,
    SQL_EVENT_TRIM,
    SQL_EVENTS_OF,
    SQL_NOTE_ADD,
    SQL_NOTE_TRIM,
    SQL_NOTES_OF,
    SQL_REVISION_GIVEN,
    SQL_REVISION_LAST,
    SQL_WORKSPACE_ADD,
    SQL_WORKSPACE_DELETE,
    SQL_WORKSPACE_ALL,
    SQL_WORKSPACE_LIMITS,
    SQL_WORKSPACE_SANDBOXES,
    SQL_WORKSPACE_GROUPS,
    SQL_GROUP_PUT,
    SQL_GROUP_SANDBOXES,
    SQL_GROUP_DELETE,
    SQL_GROUP_ALL,
    SQL_TALLY_PUT,
    SQL_TALLY_ALL,
    SQL_KEY_PUT,
    SQL_KEY_DELETE,
    SQL_KEY_DELETE_OF,
    SQL_KEY_USED,
    SQL_KEY_ALL,
    SQL_SECRET_OFFER,
    SQL_SECRET_GET,
    SQL_LIFESPAN_PUT,
    SQL_LIFESPAN_USED,
    SQL_LIFESPAN_ALL,
    SQL_PREVIEW_PUT,
    SQL_PREVIEW_DELETE,
    SQL_PREVIEW_ALL,
    SQL_PREVIEW_TOKEN_PUT,
    SQL_PREVIEW_TOKEN_DELETE,
    SQL_PREVIEW_TOKEN_SWEEP,
    SQL_PREVIEW_TOKENS_DROP,
    SQL_PREVIEW_TOKENS_OF,
    SQL_MONITOR_ADD,
    SQL_MONITOR_DELETE,
    SQL_MONITOR_ALL,
    SQL_MONITOR_PORT_PUT,
    SQL_MONITOR_PORT_DELETE,
    SQL_MONITOR_PORTS_OF,
    SQL_PORT_PUT,
    SQL_PORT_DELETE,
    SQL_PORT_ALL,
    SQL_POOL_PUT,
    SQL_POOL_DELETE,
    SQL_POOL_ALL,
    SQL_SPARE_ADD,
    SQL_SPARE_DELETE,
    SQL_SPARE_CLEAR,
    SQL_SPARE_ALL,
    SQL_STORED_SECRET_PUT,
    SQL_STORED_SECRET_DELETE,
    SQL_STORED_SECRET_ALL,
    SQL_SANDBOX_CA_PUT,
    SQL_SANDBOX_CA_DELETE,
    SQL_SANDBOX_CA_ALL,
    SQL_TOKEN_GENERATION_PUT,
    SQL_TOKEN_GENERATION_ALL,
    SQL_COUNT
};

struct sql_db {
    sqlite3 *handle;
    sqlite3_stmt *statements[SQL_COUNT];
};

struct sql_param {
    enum { SQL_TEXT, SQL_INT, SQL_BYTES } kind;
    struct slice bytes; /* of a text too; data NULL: NULL */
    int64_t number;
};

#define PARAM_TEXT(str)                                                                            \
    {                                                                                              \
        .kind = SQL_TEXT, .bytes = slice_of(str)                                                   \
    }
#define PARAM_INT(n)                                                                               \
    {                                                                                              \
        .kind = SQL_INT, .number = (n)                                                             \
    }
#define PARAM_BYTES(slice)                                                                         \
    {                                                                                              \
        .kind = SQL_BYTES, .bytes = (slice)                                                        \
    }

/* Sets the error from what SQLite said last, and returns -1. */
int sql_error(sqlite3 *handle, const char *doing, struct error *err);

/* Text of several statements, outside the list: pragmas and migrations. */
int sql_script(sqlite3 *handle, const char *script, const char *doing, struct error *err);

/* Runs a statement that gives no rows. */
int sql_run(struct sql_db *db, enum sql sql, const struct sql_param *params, size_t n,
            const char *doing, struct error *err);

/* Runs one that does, and hands each row to `row` (0 to go on), which may run other statements. */
int sql_each(struct sql_db *db, enum sql sql, const struct sql_param *params, size_t n,
             int (*row)(void *ctx, sqlite3_stmt *row, struct error *err), void *ctx,
             const char *doing, struct error *err);

void sql_release(struct sql_db *db); /* statements and handle */
