/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening and closing the database, and where a call runs. One connection: cellad is the only
 * writer, and a change costs tens of microseconds, so a queue of one thread is enough. Changes do
 * not wait for the disk (WAL, synchronous=NORMAL), which is why putting several into one
 * transaction would gain little and is not done.
 */

#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "loop/co.h"
#include "observe/meters.h"
#include "observe/span.h"
#include "store/schema.h"
#include "store/state.h"

enum { BUSY_TIMEOUT_MS = 5000 }; /* another program looks at it: the CLI's doctor, a backup */

/* A checkpoint waits for the disk, and so does the change that it happens to: fewer than by default
 * (every 1000 pages), at the price of a log of 16 MiB (room.c takes it). Its index then still fits
 * into the 32 KiB that it has from the beginning, which a full disk could not extend. */
static const char pragmas[] = "PRAGMA wal_autocheckpoint = 3900;"
                              "PRAGMA synchronous = NORMAL;"
                              "PRAGMA foreign_keys = ON;"
                              "PRAGMA secure_delete = ON;"
                              "PRAGMA trusted_schema = OFF;"
                              "PRAGMA journal_size_limit = 16777216;";

static int prepare_database(sqlite3 *handle, bool read_only, struct error *err)
{
    sqlite3_busy_timeout(handle, BUSY_TIMEOUT_MS);
    if (sql_script(handle, pragmas, "opening the database", err) < 0)
        return -1;
    if (read_only)
        return schema_check(handle, schema_migrations, schema_migration_count, err);
    if (sql_script(handle, "PRAGMA journal_mode = WAL", "opening the database", err) < 0)
        return -1;
    return schema_migrate(handle, schema_migrations, schema_migration_count, err);
}

/* Made before SQLite would, for the mode: environments hold secrets. The log beside it follows. */
static void make_private(const char *path)
{
    if (path[0] == ':') /* SQLite's own names: ":memory:" */
        return;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    (void)fd; /* whatever is wrong with the path, SQLite says it next */
}

static int open_database(const char *path, bool read_only, sqlite3 **ret_handle, struct error *err)
{
    /* NOMUTEX: the store's own mutex is held around every call. */
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    flags |= read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    sqlite3 *handle = NULL;
    if (!read_only)
        make_private(path);
    if (sqlite3_open_v2(path, &handle, flags, NULL) != SQLITE_OK)
        sql_error(handle, "opening the database", err);
    else if (prepare_database(handle, read_only, err) == 0) {
        *ret_handle = handle;
        return 0;
    }
    sqlite3_close(handle); /* SQLite gives a handle for the message even when opening failed */
    return error_prefix(err, "%s", path);
}

int store_open(struct loop *loop, const char *path, bool read_only, struct store **ret_store,
               struct error *err)
{
    struct store *store = calloc(1, sizeof(*store));
    if (store == NULL)
        return error_sys(err, "opening the store");
    pthread_mutex_init(&store->mutex, NULL);
    store->loop = loop;
    if (open_database(path, read_only, &store->db.handle, err) < 0)
        goto fail;
    if (loop != NULL && (store->workers = workers_new(loop, 1, err)) == NULL)
        goto fail;
    if (!read_only && loop != NULL)
        store_take_room(store->db.handle);
    if (!read_only)
        store_forget(store); /* what the last one was killed before */
    *ret_store = store;
    return 0;
fail:
    store_close(store);
    return -1;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    workers_free(store->workers);
    store_forget_end(store);
    sql_release(&store->db);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

struct change {
    struct store *store;
    int (*fn)(struct sql_db *db, void *arg, struct error *err);
    void *arg;
    struct error *err;
    bool removal;
    int result;
};

static int in_transaction(struct change *c)
{
    struct sql_db *db = &c->store->db;
    int64_t pages = 0;
    if (sql_run(db, SQL_BEGIN, NULL, 0, "beginning a transaction", c->err) < 0)
        return -1;
    if (store_count_pages(db, &pages, c->err) < 0 || c->fn(db, c->arg, c->err) < 0 ||
        store_check_room(db, pages, c->removal, c->err) < 0 ||
        sql_run(db, SQL_COMMIT, NULL, 0, "committing a transaction", c->err) < 0) {
        /* SQLite may have rolled back by itself (a full disk); that this fails then is no news. */
        sql_run(db, SQL_ROLLBACK, NULL, 0, "", NULL);
        return -1;
    }
    return 0;
}

static void make_change(void *arg)
{
    struct change *c = arg;
    pthread_mutex_lock(&c->store->mutex);
    c->result = in_transaction(c);
    pthread_mutex_unlock(&c->store->mutex);
}

static int run_change(struct change *c)
{
    struct store *store = c->store;
    if (store->workers == NULL || co_self(store->loop) == NULL) {
        make_change(c);
        return c->result;
    }
    struct span span;
    uint64_t begun = meter_now();
    span_begin(co_errand(store->loop), &span, "store change");
    workers_run(store->workers, make_change, c);
    meter_took(loop_meters(store->loop), METER_STORE, begun);
    span_end(co_errand(store->loop), &span, SPAN_INTERNAL, c->result < 0 ? c->err : NULL, NULL, 0);
    return c->result;
}

int store_change(struct store *store, int (*fn)(struct sql_db *db, void *arg, struct error *err),
                 void *arg, struct error *err)
{
    struct change c = {store, fn, arg, err, .result = -1};
    return run_change(&c);
}

int store_change_removal(struct store *store,
                         int (*fn)(struct sql_db *db, void *arg, struct error *err), void *arg,
                         struct error *err)
{
    struct change c = {store, fn, arg, err, .removal = true, .result = -1};
    return run_change(&c);
}

/* SQLite would go on writing to a file that has been removed under it. */
static int check_place(struct sql_db *db, void *arg, struct error *err)
{
    int moved = 0;
    sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved ? error_set(err, ERROR_UNAVAILABLE, "the database's file is not where it was") : 0;
}

/* What is there already is written once more: a page of the log, as of any change. */
static int write_something(struct sql_db *db, void *arg, struct error *err)
{
    char script[64];
    snprintf(script, sizeof(script), "PRAGMA user_version = %d", store_schema_version());
    if (check_place(db, arg, err) < 0)
        return -1;
    return sql_script(db->handle, script, "writing to the database", err);
}

int store_check(struct store *store, bool write, struct error *err)
{
    return store_change(store, write ? write_something : check_place, NULL, err);
}

int store_read(struct store *store, int (*fn)(struct sql_db *db, void *arg, struct error *err),
               void *arg, struct error *err)
{
    pthread_mutex_lock(&store->mutex);
    int result = fn(&store->db, arg, err);
    pthread_mutex_unlock(&store->mutex);
    return result;
}
