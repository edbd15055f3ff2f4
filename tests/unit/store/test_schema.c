/* SPDX-License-Identifier: Apache-2.0 */

#include "store/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fixture.h"

static struct loaded loaded;

static sqlite3 *open_raw(const char *path)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    return handle;
}

static void run(sqlite3 *handle, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(handle, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

static int number(sqlite3 *handle, const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int value = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Takes the place of the fixture's database. */
static sqlite3 *replace_database(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
    unlink(f->path);
    return open_raw(f->path);
}

static void test_steps_are_numbered(void **state)
{
    for (size_t i = 0; i < schema_migration_count; i++)
        assert_int_equal(schema_migrations[i].version, i + 1);
}

static void test_new_database(void **state)
{
    struct fixture *f = *state;
    sqlite3 *handle = open_raw(f->path);
    assert_int_equal(number(handle, "PRAGMA user_version"), (int)schema_migration_count);
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(handle, "PRAGMA journal_mode", -1, &statement, NULL), 0);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(statement, 0), "wal");
    sqlite3_finalize(statement);
    sqlite3_close(handle);
}

/* Each released version, made by its own steps, with a sandbox in it. */
static void test_from_every_version(void **state)
{
    struct fixture *f = *state;
    for (size_t version = 0; version <= schema_migration_count; version++) {
        sqlite3 *handle = replace_database(f);
        if (version > 0) {
            assert_int_equal(schema_migrate(handle, schema_migrations, version, NULL), 0);
            run(handle,
                "INSERT INTO sandbox (id, workspace, name, status, image, cpu, memory, disk,"
                "  env, enabled, created_ms, updated_ms, created_by, updated_by)"
                " VALUES ('id', 'default', 'old', 'stopped', 'host',"
                " '1', '1Gi', '5Gi', x'', 1, 1, 2, 'a', 'b');"
                "INSERT INTO event VALUES ('id', 41, 'CREATE', 'SUCCESS', '', 1);"
                "UPDATE counter SET value = 41;");
        }
        sqlite3_close(handle);
        struct error err = {0};
        if (store_open(NULL, f->path, false, &f->store, &err) < 0)
            fail_msg("from version %zu: %s", version, err.message);
        load(f->store, &loaded);
        assert_int_equal(loaded.sandbox_count, version > 0);
        assert_int_equal(loaded.event_count, version > 0);
        uint64_t revision;
        assert_int_equal(store_last_revision(f->store, &revision, NULL), 0);
        assert_int_equal(revision, version > 0 ? 41 : 0);
        struct store_key key = {.id = "i", .hash = "x", .name = "n", .workspace = "default"};
        assert_int_equal(store_put_key(f->store, &key, NULL), 0);
    }
}

/* Version 1 as it was released, written out: a step that is changed later shows here. */
static void test_from_version_1_by_hand(void **state)
{
    struct fixture *f = *state;
    sqlite3 *handle = replace_database(f);
    run(handle,
        "CREATE TABLE sandbox (id TEXT NOT NULL PRIMARY KEY, workspace TEXT NOT NULL,"
        " name TEXT NOT NULL, status TEXT NOT NULL, image TEXT NOT NULL, cpu TEXT, memory TEXT,"
        " disk TEXT, env BLOB NOT NULL, enabled INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
        " updated_ms INTEGER NOT NULL, created_by TEXT, updated_by TEXT, UNIQUE (workspace, name)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE event (sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,"
        " revision INTEGER NOT NULL, type TEXT NOT NULL, status TEXT NOT NULL, message TEXT,"
        " time_ms INTEGER NOT NULL, PRIMARY KEY (sandbox, revision)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE counter (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL)"
        " STRICT, WITHOUT ROWID;"
        "INSERT INTO counter VALUES ('revision', 7);"
        "INSERT INTO sandbox VALUES ('id', 'default', 'old', 'running', 'host', NULL, NULL, NULL,"
        " x'413d3100', 0, 1, 2, NULL, NULL);"
        "PRAGMA user_version = 1;");
    sqlite3_close(handle);

    /* Looking at it does not change it. */
    struct error err = {0};
    assert_int_equal(store_open(NULL, f->path, true, &f->store, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_non_null(strstr(err.message, "version 1 and this program needs"));

    if (store_open(NULL, f->path, false, &f->store, &err) < 0)
        fail_msg("%s", err.message);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 1);
    assert_string_equal(loaded.names[0], "old");
    assert_memory_equal(loaded.env, "A=1", 4);
    struct store_sandbox row = make_sandbox("id", "old");
    struct store_event event = make_event(8);
    assert_int_equal(store_put_sandbox(f->store, &row, &event, &err), 0);
    struct store_key key = {.id = "i", .hash = "x", .name = "n", .workspace = "default"};
    assert_int_equal(store_put_key(f->store, &key, &err), 0);
}

static void test_newer_is_refused(void **state)
{
    struct fixture *f = *state;
    char set[64];
    sqlite3 *handle = open_raw(f->path);
    snprintf(set, sizeof(set), "PRAGMA user_version = %zu", schema_migration_count + 1);
    run(handle, set);
    sqlite3_close(handle);
    for (int read_only = 0; read_only <= 1; read_only++) {
        struct store *store = NULL;
        struct error err = {0};
        assert_int_equal(store_open(NULL, f->path, read_only, &store, &err), -1);
        assert_int_equal(err.code, ERROR_CONFLICT);
        assert_non_null(strstr(err.message, "newer version"));
        assert_null(store);
    }
}

static void test_failed_step_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    static const struct migration steps[] = {
        {1, "CREATE TABLE one (a INTEGER); INSERT INTO one VALUES (1);"},
        {2, "CREATE TABLE two (a INTEGER); UPDATE one SET a = 2; INSERT INTO nowhere VALUES (1);"},
    };
    sqlite3 *handle = replace_database(f);
    struct error err = {0};
    assert_int_equal(schema_migrate(handle, steps, ARRAY_LEN(steps), &err), -1);
    assert_non_null(strstr(err.message, "to version 2"));
    assert_int_equal(number(handle, "PRAGMA user_version"), 1);
    assert_int_equal(number(handle, "SELECT a FROM one"), 1);
    assert_int_equal(number(handle, "SELECT count(*) FROM sqlite_schema WHERE name = 'two'"), 0);

    static const struct migration mended[] = {
        {1, "this is not done again"},
        {2, "CREATE TABLE two (a INTEGER); UPDATE one SET a = 2;"},
    };
    assert_int_equal(schema_migrate(handle, mended, ARRAY_LEN(mended), &err), 0);
    assert_int_equal(number(handle, "SELECT a FROM one"), 2);
    assert_int_equal(schema_migrate(handle, mended, ARRAY_LEN(mended), &err), 0);
    sqlite3_close(handle);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_steps_are_numbered), TEST(test_new_database),
        TEST(test_from_every_version), TEST(test_from_version_1_by_hand),
        TEST(test_newer_is_refused),   TEST(test_failed_step_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
