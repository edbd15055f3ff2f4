/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the tables look like, and how they came to. user_version counts the steps that were done;
 * it changes in the same transaction as the tables do, so there is no state in between.
 */

#include "store/schema.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "store/sql.h"

const struct migration schema_migrations[] = {
    {1, "CREATE TABLE sandbox ("
        "  id TEXT NOT NULL PRIMARY KEY,"
        "  workspace TEXT NOT NULL,"
        "  name TEXT NOT NULL,"
        "  status TEXT NOT NULL,"
        "  image TEXT NOT NULL,"
        "  cpu TEXT, memory TEXT, disk TEXT,"
        "  env BLOB NOT NULL,"
        "  enabled INTEGER NOT NULL,"
        "  created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
        "  created_by TEXT, updated_by TEXT,"
        "  UNIQUE (workspace, name)"
        ") STRICT, WITHOUT ROWID;"
        /* The events of a sandbox lie together, in order. */
        "CREATE TABLE event ("
        "  sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,"
        "  revision INTEGER NOT NULL,"
        "  type TEXT NOT NULL,"
        "  status TEXT NOT NULL,"
        "  message TEXT,"
        "  time_ms INTEGER NOT NULL,"
        "  PRIMARY KEY (sandbox, revision)"
        ") STRICT, WITHOUT ROWID;"
        /* What was given out must not be given out again, even when its events are gone. */
        "CREATE TABLE counter ("
        "  name TEXT NOT NULL PRIMARY KEY,"
        "  value INTEGER NOT NULL"
        ") STRICT, WITHOUT ROWID;"
        "INSERT INTO counter (name, value) VALUES ('revision', 0);"},
    {2, "CREATE TABLE api_key ("
        "  hash TEXT NOT NULL PRIMARY KEY,"
        "  name TEXT NOT NULL,"
        "  workspace TEXT NOT NULL,"
        "  scopes INTEGER NOT NULL,"
        "  created_ms INTEGER NOT NULL"
        ") STRICT, WITHOUT ROWID;"},
    {3, "ALTER TABLE sandbox ADD COLUMN labels BLOB NOT NULL DEFAULT x'';"
        "ALTER TABLE sandbox ADD COLUMN external_id TEXT;"
        "ALTER TABLE sandbox ADD COLUMN display_name TEXT;"
        "ALTER TABLE sandbox ADD COLUMN blaxel_spec TEXT;"
        "ALTER TABLE sandbox ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE sandbox ADD COLUMN clone_of TEXT;"
        "ALTER TABLE sandbox ADD COLUMN unsettled INTEGER NOT NULL DEFAULT 0;"
        "UPDATE sandbox SET revision = coalesce("
        "  (SELECT max(revision) FROM event WHERE event.sandbox = sandbox.id), 0);"},
    {4, "CREATE TABLE workspace ("
        "  name TEXT NOT NULL PRIMARY KEY,"
        "  created_ms INTEGER NOT NULL,"
        "  created_by TEXT"
        ") STRICT, WITHOUT ROWID;"
        "INSERT INTO workspace (name, created_ms) VALUES ('default', 0);"
        "INSERT OR IGNORE INTO workspace (name, created_ms)"
        " SELECT DISTINCT workspace, 0 FROM sandbox;"
        "INSERT OR IGNORE INTO workspace (name, created_ms)"
        " SELECT DISTINCT workspace, 0 FROM api_key;"
        /* A workspace that is deleted while a sandbox is being made in it: one of the two loses
         * here, whatever the callers have checked before. */
        "CREATE TRIGGER sandbox_needs_workspace BEFORE INSERT ON sandbox"
        " WHEN NOT EXISTS (SELECT 1 FROM workspace WHERE name = NEW.workspace)"
        " BEGIN SELECT RAISE (ABORT, 'no such workspace'); END;"
        /* Keys get an id to be revoked by, and a life. The one of the first start is 'admin'. */
        "CREATE TABLE key ("
        "  id TEXT NOT NULL PRIMARY KEY,"
        "  hash TEXT NOT NULL UNIQUE,"
        "  hint TEXT NOT NULL,"
        "  name TEXT NOT NULL,"
        "  workspace TEXT NOT NULL REFERENCES workspace (name),"
        "  scopes INTEGER NOT NULL,"
        "  created_ms INTEGER NOT NULL, created_by TEXT NOT NULL,"
        "  expires_ms INTEGER NOT NULL, last_used_ms INTEGER NOT NULL,"
        "  UNIQUE (workspace, name)"
        ") STRICT, WITHOUT ROWID;"
        "INSERT OR IGNORE INTO key"
        " SELECT CASE name WHEN 'admin' THEN name ELSE lower(hex(randomblob(8))) END, hash, '',"
        "        name, workspace, scopes, created_ms, '', 0, 0 FROM api_key;"
        "DROP TABLE api_key;"
        "CREATE TABLE secret ("
        "  name TEXT NOT NULL PRIMARY KEY,"
        "  value BLOB NOT NULL"
        ") STRICT, WITHOUT ROWID;"},
    /* The notes of a sandbox lie together, in order. */
    {5, "CREATE TABLE note ("
        "  sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,"
        "  number INTEGER NOT NULL,"
        "  time_ms INTEGER NOT NULL,"
        "  level INTEGER NOT NULL,"
        "  message TEXT NOT NULL,"
        "  PRIMARY KEY (sandbox, number)"
        ") STRICT, WITHOUT ROWID;"},
    {6, "CREATE TABLE preview ("
        "  id TEXT NOT NULL PRIMARY KEY,"
        "  sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,"
        "  name TEXT NOT NULL,"
        "  port INTEGER NOT NULL,"
        "  public INTEGER NOT NULL,"
        "  expires_ms INTEGER NOT NULL,"
        "  created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, created_by TEXT NOT NULL,"
        "  request_headers BLOB NOT NULL, response_headers BLOB NOT NULL,"
        "  spec TEXT NOT NULL,"
        "  UNIQUE (sandbox, name)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE preview_token ("
        "  preview TEXT NOT NULL REFERENCES preview (id) ON DELETE CASCADE,"
        "  name TEXT NOT NULL,"
        "  token TEXT NOT NULL,"
        "  expires_ms INTEGER NOT NULL,"
        "  created_ms INTEGER NOT NULL,"
        "  PRIMARY KEY (preview, name)"
        ") STRICT, WITHOUT ROWID;"},
    {7, "CREATE TABLE monitor ("
        "  sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,"
        "  pid INTEGER NOT NULL,"
        "  started_ms INTEGER NOT NULL,"
        "  callback TEXT NOT NULL,"
        "  shape INTEGER NOT NULL,"
        "  PRIMARY KEY (sandbox, pid)"
        ") STRICT, WITHOUT ROWID;"
        /* The ports that it has seen; told: there is nothing left to do about it. */
        "CREATE TABLE monitor_port ("
        "  sandbox TEXT NOT NULL,"
        "  pid INTEGER NOT NULL,"
        "  port INTEGER NOT NULL,"
        "  told INTEGER NOT NULL,"
        "  PRIMARY KEY (sandbox, pid, port),"
        "  FOREIGN KEY (sandbox, pid) REFERENCES monitor (sandbox, pid) ON DELETE CASCADE"
        ") STRICT, WITHOUT ROWID;"},
    {8, "ALTER TABLE sandbox ADD COLUMN trust_level TEXT;"
        "ALTER TABLE sandbox ADD COLUMN security TEXT;"},
    /* Lists "name=value": what it was asked for besides cpu, memory and disk, and how its limits
     * follow what it uses. */
    {9, "ALTER TABLE sandbox ADD COLUMN resources BLOB NOT NULL DEFAULT x'';"
        "ALTER TABLE sandbox ADD COLUMN auto_lower BLOB NOT NULL DEFAULT x'';"},
    /* A sandbox of a group is named "group/name" in the table sandbox: so a name is unique in its
     * group, and the constraint that was there says so. */
    {10, "CREATE TABLE sandbox_group ("
         "  id TEXT NOT NULL PRIMARY KEY,"
         "  workspace TEXT NOT NULL,"
         "  name TEXT NOT NULL,"
         "  spec TEXT NOT NULL,"
         "  ending INTEGER NOT NULL,"
         "  created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
         "  created_by TEXT NOT NULL, updated_by TEXT NOT NULL,"
         "  UNIQUE (workspace, name)"
         ") STRICT, WITHOUT ROWID;"
         "CREATE TRIGGER group_needs_workspace BEFORE INSERT ON sandbox_group"
         " WHEN NOT EXISTS (SELECT 1 FROM workspace WHERE name = NEW.workspace)"
         " BEGIN SELECT RAISE (ABORT, 'no such workspace'); END;"
         "CREATE TRIGGER sandbox_needs_group BEFORE INSERT ON sandbox"
         " WHEN instr(NEW.name, '/') > 0 AND NOT EXISTS ("
         "  SELECT 1 FROM sandbox_group WHERE workspace = NEW.workspace"
         "  AND name = substr(NEW.name, 1, instr(NEW.name, '/') - 1))"
         " BEGIN SELECT RAISE (ABORT, 'no such group'); END;"
         /* How long a sandbox has run, and how much it was asked. */
         "CREATE TABLE tally ("
         "  sandbox TEXT NOT NULL PRIMARY KEY REFERENCES sandbox (id) ON DELETE CASCADE,"
         "  starts INTEGER NOT NULL,"
         "  since_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL, ran_ms INTEGER NOT NULL,"
         "  actions INTEGER NOT NULL, commands INTEGER NOT NULL"
         ") STRICT, WITHOUT ROWID;"},
    {11, "CREATE TABLE lifespan ("
         "  sandbox TEXT NOT NULL PRIMARY KEY REFERENCES sandbox (id) ON DELETE CASCADE,"
         "  ttl_s INTEGER NOT NULL, idle_s INTEGER NOT NULL, max_age_s INTEGER NOT NULL,"
         "  expires_ms INTEGER NOT NULL,"
         "  on_expire TEXT,"
         "  ttl_from_ms INTEGER NOT NULL, active_ms INTEGER NOT NULL"
         ") STRICT, WITHOUT ROWID;"},
    {12, "CREATE TABLE pool ("
         "  name TEXT NOT NULL PRIMARY KEY,"
         "  image TEXT NOT NULL,"
         "  cpu TEXT NOT NULL, memory TEXT NOT NULL, disk TEXT NOT NULL, resources BLOB NOT NULL,"
         "  trust_level TEXT, security TEXT,"
         "  size INTEGER NOT NULL,"
         "  ttl_s INTEGER NOT NULL,"
         "  at_once INTEGER NOT NULL,"
         "  created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
         "  created_by TEXT NOT NULL"
         ") STRICT, WITHOUT ROWID;"
         /* What a pool has made ahead: until a sandbox of its id runs, and so is what it should
          * be. */
         "CREATE TABLE spare ("
         "  id TEXT NOT NULL PRIMARY KEY,"
         "  pool TEXT NOT NULL"
         ") STRICT, WITHOUT ROWID;"
         "CREATE TRIGGER spare_claimed AFTER UPDATE OF status ON sandbox"
         " WHEN NEW.status = 'running' BEGIN DELETE FROM spare WHERE id = NEW.id; END;"},
    /* Network policies, packed (network/policy.h); empty: no network. */
    {13, "ALTER TABLE sandbox ADD COLUMN network BLOB NOT NULL DEFAULT x'';"
         "ALTER TABLE pool ADD COLUMN network BLOB NOT NULL DEFAULT x'';"},
    {14, "CREATE TABLE published_port ("
         "  sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,"
         "  port INTEGER NOT NULL,"
         "  protocol TEXT NOT NULL,"
         "  access TEXT NOT NULL,"
         "  host_port INTEGER UNIQUE," /* NULL: none */
         "  command TEXT,"
         "  generation TEXT NOT NULL,"
         "  created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
         "  created_by TEXT NOT NULL,"
         "  PRIMARY KEY (sandbox, port)"
         ") STRICT, WITHOUT ROWID;"
         "ALTER TABLE lifespan ADD COLUMN wake INTEGER NOT NULL DEFAULT 0;"},
    /* Values and keys are sealed by who stores them (auth/seal.h); hosts are a list of strings. */
    {15, "CREATE TABLE workspace_secret ("
         "  workspace TEXT NOT NULL REFERENCES workspace (name) ON DELETE CASCADE,"
         "  name TEXT NOT NULL,"
         "  sealed BLOB NOT NULL,"
         "  hosts BLOB NOT NULL,"
         "  created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
         "  created_by TEXT NOT NULL, updated_by TEXT NOT NULL,"
         "  PRIMARY KEY (workspace, name)"
         ") STRICT, WITHOUT ROWID;"
         "CREATE TABLE sandbox_ca ("
         "  sandbox TEXT NOT NULL PRIMARY KEY REFERENCES sandbox (id) ON DELETE CASCADE,"
         "  certificate TEXT NOT NULL,"
         "  sealed_key BLOB NOT NULL"
         ") STRICT, WITHOUT ROWID;"},
    {16, "ALTER TABLE sandbox ADD COLUMN e2b_spec TEXT;"},
    {17, "ALTER TABLE workspace_secret ADD COLUMN version INTEGER NOT NULL DEFAULT 1;"
         "ALTER TABLE workspace_secret ADD COLUMN metadata TEXT;"},
    {18, "ALTER TABLE pool ADD COLUMN code TEXT NOT NULL DEFAULT '';"},
    /* Tokens that are bound to a sandbox and say another generation are worth nothing; a sandbox
     * that is not here has the first, 0. */
    {19, "CREATE TABLE token_generation ("
         "  sandbox TEXT NOT NULL PRIMARY KEY REFERENCES sandbox (id) ON DELETE CASCADE,"
         "  generation INTEGER NOT NULL"
         ") STRICT, WITHOUT ROWID;"},
    /* What is said about its history (sandbox/history_rules.h); empty: nothing. */
    {20, "ALTER TABLE sandbox ADD COLUMN history BLOB NOT NULL DEFAULT x'';"},
    /* What a workspace may, where that is not what the server's options say; as they are written.
     */
    {21, "ALTER TABLE workspace ADD COLUMN rates TEXT NOT NULL DEFAULT '';"
         "ALTER TABLE workspace ADD COLUMN quotas TEXT NOT NULL DEFAULT '';"},
    /* Whose word a key was made on (struct principal); empty: nobody else's. */
    {22, "ALTER TABLE key ADD COLUMN issuer TEXT NOT NULL DEFAULT '';"},
    /* The restart policy, and whether it is to bring the sandbox up again (sandbox/restart.c). */
    {23, "ALTER TABLE sandbox ADD COLUMN restart TEXT NOT NULL DEFAULT 'on-use';"
         "ALTER TABLE sandbox ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;"},
};
const size_t schema_migration_count = ARRAY_LEN(schema_migrations);

static int read_version(sqlite3 *handle, int *ret_version, struct error *err)
{
    static const char doing[] = "reading the database's version";
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(handle, "PRAGMA user_version", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        sql_error(handle, doing, err);
        sqlite3_finalize(statement);
        return -1;
    }
    *ret_version = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return 0;
}

static int refuse_newer(int version, int newest, struct error *err)
{
    return error_set(err, ERROR_CONFLICT,
                     "the database has schema version %d and this program knows %d at most: it "
                     "was used by a newer version of Cella",
                     version, newest);
}

/* One step, unless another process has done it meanwhile. Inside a transaction. */
static int step(sqlite3 *handle, const struct migration *migration, struct error *err)
{
    int version;
    char doing[64], set_version[64];
    snprintf(doing, sizeof(doing), "bringing the database to version %d", migration->version);
    snprintf(set_version, sizeof(set_version), "PRAGMA user_version = %d", migration->version);
    if (read_version(handle, &version, err) < 0)
        return -1;
    if (version >= migration->version)
        return 0;
    if (sql_script(handle, migration->script, doing, err) < 0)
        return -1;
    return sql_script(handle, set_version, doing, err);
}

int schema_migrate(sqlite3 *handle, const struct migration *migrations, size_t n, struct error *err)
{
    static const char doing[] = "migrating the database";
    int version, newest = migrations[n - 1].version;
    if (read_version(handle, &version, err) < 0)
        return -1;
    if (version > newest)
        return refuse_newer(version, newest, err);
    for (size_t i = 0; i < n; i++) {
        if (migrations[i].version <= version)
            continue;
        if (sql_script(handle, "BEGIN IMMEDIATE", doing, err) < 0)
            return -1;
        if (step(handle, &migrations[i], err) < 0 || sql_script(handle, "COMMIT", doing, err) < 0) {
            sqlite3_exec(handle, "ROLLBACK", NULL, NULL, NULL);
            return -1;
        }
    }
    return schema_check(handle, migrations, n, err);
}

int schema_check(sqlite3 *handle, const struct migration *migrations, size_t n, struct error *err)
{
    int version, newest = migrations[n - 1].version;
    if (read_version(handle, &version, err) < 0)
        return -1;
    if (version > newest)
        return refuse_newer(version, newest, err);
    if (version < newest)
        return error_set(err, ERROR_CONFLICT,
                         "the database has schema version %d and this program needs %d: start the "
                         "server once to bring it up to date",
                         version, newest);
    return 0;
}
