/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every statement in one table, and the few ways to run one. Preparing costs more than running, so
 * statements are kept for as long as the database is open.
 */

#include "store/sql.h"

#include <errno.h>

#include "base/cleanup.h"

static const char *const texts[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_PAGE_COUNT] = "PRAGMA page_count",
    [SQL_PAGE_SIZE] = "PRAGMA page_size",

    /* Not INSERT OR REPLACE: that would take another sandbox's name, and events with it. */
    [SQL_SANDBOX_PUT] =
        "INSERT INTO sandbox (id, workspace, name, status, image, cpu, memory, disk, env, enabled,"
        "                     created_ms, updated_ms, created_by, updated_by, labels, external_id,"
        "                     display_name, blaxel_spec, revision, clone_of, unsettled,"
        "                     trust_level, security, resources, auto_lower, network, e2b_spec,"
        "                     history, restart, interrupted)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"
        "         ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28,"
        "         coalesce(?29, 'on-use'), ?30)"
        " ON CONFLICT (id) DO UPDATE SET"
        "  workspace = ?2, name = ?3, status = ?4, image = ?5, cpu = ?6, memory = ?7, disk = ?8,"
        "  env = ?9, enabled = ?10, created_ms = ?11, updated_ms = ?12, created_by = ?13,"
        "  updated_by = ?14, labels = ?15, external_id = ?16, display_name = ?17,"
        "  blaxel_spec = ?18, revision = ?19, clone_of = ?20, unsettled = ?21,"
        "  trust_level = ?22, security = ?23, resources = ?24, auto_lower = ?25,"
        "  network = ?26, e2b_spec = ?27, history = ?28, restart = coalesce(?29, 'on-use'),"
        "  interrupted = ?30",
    [SQL_SANDBOX_DELETE] = "DELETE FROM sandbox WHERE id = ?1",
    [SQL_SANDBOX_STOP_ALL] = "UPDATE sandbox SET interrupted = 0, status = CASE"
                             "  WHEN status IN ('creating', 'deleting', 'failed') THEN status"
                             "  ELSE 'stopped' END",
    [SQL_SANDBOX_ALL] =
        "SELECT id, workspace, name, status, image, cpu, memory, disk, env, enabled,"
        "       created_ms, updated_ms, created_by, updated_by, labels, external_id, display_name,"
        "       blaxel_spec, revision, clone_of, unsettled, trust_level, security, resources,"
        "       auto_lower, network, e2b_spec, history, restart, interrupted"
        " FROM sandbox ORDER BY created_ms, id",

    [SQL_EVENT_ADD] = "INSERT INTO event (sandbox, revision, type, status, message, time_ms)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_EVENT_TRIM] = "DELETE FROM event WHERE sandbox = ?1 AND revision <="
                       " (SELECT revision FROM event WHERE sandbox = ?1"
                       "  ORDER BY revision DESC LIMIT 1 OFFSET ?2)",
    [SQL_EVENTS_OF] = "SELECT type, status, message, time_ms, revision FROM event"
                      " WHERE sandbox = ?1 ORDER BY revision",

    [SQL_NOTE_ADD] = "INSERT INTO note (sandbox, number, time_ms, level, message)"
                     " VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_NOTE_TRIM] = "DELETE FROM note WHERE sandbox = ?1 AND number <= ?2",
    [SQL_NOTES_OF] = "SELECT number, time_ms, level, message FROM note"
                     " WHERE sandbox = ?1 ORDER BY number",

    [SQL_REVISION_GIVEN] = "UPDATE counter SET value = ?1 WHERE name = 'revision' AND value < ?1",
    [SQL_REVISION_LAST] = "SELECT value FROM counter WHERE name = 'revision'",

    [SQL_WORKSPACE_ADD] = "INSERT INTO workspace (name, created_ms, created_by)"
                          " VALUES (?1, ?2, ?3)",
    [SQL_WORKSPACE_DELETE] = "DELETE FROM workspace WHERE name = ?1",
    [SQL_WORKSPACE_ALL] = "SELECT name, created_ms, created_by, rates, quotas FROM workspace"
                          " ORDER BY name",
    [SQL_WORKSPACE_LIMITS] = "UPDATE workspace SET rates = ?2, quotas = ?3 WHERE name = ?1",
    [SQL_WORKSPACE_SANDBOXES] = "SELECT count(*) FROM sandbox WHERE workspace = ?1",

    [SQL_WORKSPACE_GROUPS] = "SELECT count(*) FROM sandbox_group WHERE workspace = ?1",

    [SQL_GROUP_PUT] = "INSERT INTO sandbox_group (id, workspace, name, spec, ending, created_ms,"
                      "                           updated_ms, created_by, updated_by)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                      " ON CONFLICT (id) DO UPDATE SET"
                      "  spec = ?4, ending = ?5, updated_ms = ?7, updated_by = ?9",
    /* '0' is the character behind '/': the range is all names that begin with "group/". */
    [SQL_GROUP_SANDBOXES] = "SELECT count(*) FROM sandbox AS member, sandbox_group AS owner"
                            " WHERE owner.id = ?1 AND member.workspace = owner.workspace"
                            " AND member.name > owner.name || '/'"
                            " AND member.name < owner.name || '0'",
    [SQL_GROUP_DELETE] = "DELETE FROM sandbox_group WHERE id = ?1",
    [SQL_GROUP_ALL] = "SELECT id, workspace, name, spec, ending, created_ms, updated_ms,"
                      "       created_by, updated_by"
                      " FROM sandbox_group ORDER BY created_ms, id",

    /* One that is gone meanwhile needs none. */
    [SQL_TALLY_PUT] = "INSERT OR REPLACE INTO tally (sandbox, starts, since_ms, seen_ms, ran_ms,"
                      "                              actions, commands)"
                      " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7"
                      " WHERE EXISTS (SELECT 1 FROM sandbox WHERE id = ?1)",
    [SQL_TALLY_ALL] = "SELECT sandbox, starts, since_ms, seen_ms, ran_ms, actions, commands"
                      " FROM tally",

    [SQL_KEY_PUT] = "INSERT INTO key (id, hash, hint, name, workspace, scopes, created_ms,"
                    "                 created_by, expires_ms, last_used_ms, issuer)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
                    " ON CONFLICT (id) DO UPDATE SET"
                    "  hash = ?2, hint = ?3, name = ?4, workspace = ?5, scopes = ?6",
    [SQL_KEY_DELETE] = "DELETE FROM key WHERE id = ?1",
    [SQL_KEY_DELETE_OF] = "DELETE FROM key WHERE workspace = ?1",
    [SQL_KEY_USED] = "UPDATE key SET last_used_ms = ?2 WHERE id = ?1",
    [SQL_KEY_ALL] = "SELECT id, hash, hint, name, workspace, scopes, created_ms, created_by,"
                    "       expires_ms, last_used_ms, issuer"
                    " FROM key ORDER BY created_ms, id",

    [SQL_SECRET_OFFER] = "INSERT OR IGNORE INTO secret (name, value) VALUES (?1, ?2)",
    [SQL_SECRET_GET] = "SELECT value FROM secret WHERE name = ?1",
    [SQL_MONITOR_ADD] = "INSERT INTO monitor (sandbox, pid, started_ms, callback, shape)"
                        " VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_MONITOR_DELETE] = "DELETE FROM monitor WHERE sandbox = ?1 AND pid = ?2",
    [SQL_MONITOR_ALL] = "SELECT sandbox, pid, started_ms, callback, shape FROM monitor",
    [SQL_MONITOR_PORT_PUT] = "INSERT INTO monitor_port (sandbox, pid, port, told)"
                             " VALUES (?1, ?2, ?3, ?4)"
                             " ON CONFLICT (sandbox, pid, port) DO UPDATE SET told = excluded.told",
    [SQL_MONITOR_PORT_DELETE] =
        "DELETE FROM monitor_port WHERE sandbox = ?1 AND pid = ?2 AND port = ?3",
    [SQL_MONITOR_PORTS_OF] = "SELECT port, told FROM monitor_port WHERE sandbox = ?1 AND pid = ?2",
    [SQL_LIFESPAN_PUT] =
        "INSERT INTO lifespan (sandbox, ttl_s, idle_s, max_age_s, expires_ms, on_expire,"
        "                      ttl_from_ms, active_ms, wake)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        " ON CONFLICT (sandbox) DO UPDATE SET"
        "  ttl_s = ?2, idle_s = ?3, max_age_s = ?4, expires_ms = ?5, on_expire = ?6,"
        "  ttl_from_ms = ?7, active_ms = ?8, wake = ?9",
    [SQL_LIFESPAN_USED] = "UPDATE lifespan SET active_ms = ?2 WHERE sandbox = ?1",
    [SQL_LIFESPAN_ALL] = "SELECT sandbox, ttl_s, idle_s, max_age_s, expires_ms, on_expire,"
                         "       ttl_from_ms, active_ms, wake FROM lifespan",
    [SQL_PREVIEW_PUT] =
        "INSERT INTO preview (id, sandbox, name, port, public, expires_ms, created_ms, updated_ms,"
        "                     created_by, request_headers, response_headers, spec)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        " ON CONFLICT (id) DO UPDATE SET"
        "  port = ?4, public = ?5, expires_ms = ?6, updated_ms = ?8, request_headers = ?10,"
        "  response_headers = ?11, spec = ?12",
    [SQL_PREVIEW_DELETE] = "DELETE FROM preview WHERE id = ?1",
    [SQL_PREVIEW_ALL] =
        "SELECT id, sandbox, name, port, public, expires_ms, created_ms, updated_ms, created_by,"
        " request_headers, response_headers, spec FROM preview ORDER BY created_ms, id",
    [SQL_PREVIEW_TOKEN_PUT] =
        "INSERT INTO preview_token (preview, name, token, expires_ms, created_ms)"
        " VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_PREVIEW_TOKEN_DELETE] = "DELETE FROM preview_token WHERE preview = ?1 AND name = ?2",
    [SQL_PREVIEW_TOKEN_SWEEP] = "DELETE FROM preview_token WHERE preview = ?1"
                                " AND expires_ms <> 0 AND expires_ms <= ?2",
    [SQL_PREVIEW_TOKENS_DROP] = "DELETE FROM preview_token WHERE preview = ?1",
    [SQL_PREVIEW_TOKENS_OF] = "SELECT name, token, expires_ms, created_ms FROM preview_token"
                              " WHERE preview = ?1 ORDER BY created_ms, name",

    [SQL_PORT_PUT] = "INSERT INTO published_port (sandbox, port, protocol, access, host_port,"
                     "                            command, generation, created_ms, updated_ms,"
                     "                            created_by)"
                     " VALUES (?1, ?2, ?3, ?4, nullif(?5, 0), ?6, ?7, ?8, ?9, ?10)"
                     " ON CONFLICT (sandbox, port) DO UPDATE SET"
                     "  access = ?4, command = ?6, generation = ?7, updated_ms = ?9",
    [SQL_PORT_DELETE] = "DELETE FROM published_port WHERE sandbox = ?1 AND port = ?2",
    [SQL_PORT_ALL] = "SELECT sandbox, port, protocol, access, host_port, command, generation,"
                     "       created_ms, updated_ms, created_by"
                     " FROM published_port ORDER BY created_ms, sandbox, port",

    [SQL_POOL_PUT] = "INSERT INTO pool (name, image, cpu, memory, disk, trust_level, security,"
                     "                  size, ttl_s, at_once, created_ms, updated_ms, created_by,"
                     "                  resources, network, code)"
                     " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
                     "         ?16)"
                     " ON CONFLICT (name) DO UPDATE SET"
                     "  size = ?8, ttl_s = ?9, at_once = ?10, updated_ms = ?12, code = ?16",
    [SQL_POOL_DELETE] = "DELETE FROM pool WHERE name = ?1",
    [SQL_POOL_ALL] = "SELECT name, image, cpu, memory, disk, trust_level, security, size, ttl_s,"
                     "       at_once, created_ms, updated_ms, created_by, resources, network, code"
                     " FROM pool ORDER BY name",
    [SQL_SPARE_ADD] = "INSERT INTO spare (id, pool) VALUES (?1, ?2)",
    [SQL_SPARE_DELETE] = "DELETE FROM spare WHERE id = ?1",
    [SQL_SPARE_CLEAR] = "DELETE FROM spare WHERE id NOT IN (SELECT id FROM sandbox)",
    [SQL_SPARE_ALL] = "SELECT id FROM spare",

    [SQL_STORED_SECRET_PUT] =
        "INSERT INTO workspace_secret (workspace, name, sealed, hosts, created_ms, updated_ms,"
        "                              created_by, updated_by, version, metadata)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        " ON CONFLICT (workspace, name) DO UPDATE SET"
        "  sealed = ?3, hosts = ?4, updated_ms = ?6, updated_by = ?8, version = ?9, metadata = ?10",
    [SQL_STORED_SECRET_DELETE] = "DELETE FROM workspace_secret WHERE workspace = ?1 AND name = ?2",
    [SQL_STORED_SECRET_ALL] = "SELECT workspace, name, sealed, hosts, created_ms, updated_ms,"
                              "       created_by, updated_by, version, metadata"
                              " FROM workspace_secret ORDER BY workspace, name",
    [SQL_SANDBOX_CA_PUT] = "INSERT INTO sandbox_ca (sandbox, certificate, sealed_key)"
                           " VALUES (?1, ?2, ?3)"
                           " ON CONFLICT (sandbox) DO UPDATE SET"
                           "  certificate = ?2, sealed_key = ?3",
    [SQL_SANDBOX_CA_DELETE] = "DELETE FROM sandbox_ca WHERE sandbox = ?1",
    [SQL_SANDBOX_CA_ALL] = "SELECT sandbox, certificate, sealed_key FROM sandbox_ca",
    [SQL_TOKEN_GENERATION_PUT] = "INSERT INTO token_generation (sandbox, generation)"
                                 " VALUES (?1, ?2)"
                                 " ON CONFLICT (sandbox) DO UPDATE SET generation = ?2",
    [SQL_TOKEN_GENERATION_ALL] = "SELECT sandbox, generation FROM token_generation",
};

/* SQLite's primary result codes that mean something to a user; the others are INTERNAL. */
static const struct {
    int result;
    enum error_code code;
} result_rows[] = {
    {SQLITE_FULL, ERROR_QUOTA_EXCEEDED},    {SQLITE_BUSY, ERROR_UNAVAILABLE},
    {SQLITE_LOCKED, ERROR_UNAVAILABLE},     {SQLITE_READONLY, ERROR_PERMISSION_DENIED},
    {SQLITE_PERM, ERROR_PERMISSION_DENIED}, {SQLITE_AUTH, ERROR_PERMISSION_DENIED},
    {SQLITE_CONSTRAINT, ERROR_CONFLICT},    {SQLITE_NOMEM, ERROR_LIMIT_EXCEEDED},
};

int sql_error(sqlite3 *handle, const char *doing, struct error *err)
{
    int result = sqlite3_errcode(handle);
    int sys = sqlite3_system_errno(handle);
    enum error_code code = ERROR_INTERNAL;
    bool full = (result & 0xff) == SQLITE_IOERR &&
                (sys == ENOSPC || sys == EDQUOT || result == SQLITE_IOERR_SHMSIZE);
    if ((result == SQLITE_CANTOPEN && sys != 0) || full)
        code = error_from_errno(full ? ENOSPC : sys);
    for (size_t i = 0; i < ARRAY_LEN(result_rows); i++)
        if (result_rows[i].result == (result & 0xff))
            code = result_rows[i].code;
    return error_set(err, code, "%s: %s", doing, sqlite3_errmsg(handle));
}

int sql_script(sqlite3 *handle, const char *script, const char *doing, struct error *err)
{
    if (sqlite3_exec(handle, script, NULL, NULL, NULL) != SQLITE_OK)
        return sql_error(handle, doing, err);
    return 0;
}

static int bind(sqlite3_stmt *statement, int at, const struct sql_param *param)
{
    if (param->kind == SQL_INT)
        return sqlite3_bind_int64(statement, at, param->number);
    if (param->kind == SQL_TEXT) /* NULL data binds NULL */
        return sqlite3_bind_text64(statement, at, param->bytes.data, param->bytes.len,
                                   SQLITE_STATIC, SQLITE_UTF8);
    const char *data = param->bytes.len == 0 ? "" : param->bytes.data;
    return sqlite3_bind_blob64(statement, at, data, param->bytes.len, SQLITE_STATIC);
}

/* The statement, with its parameters. Borrowed; sqlite3_reset() it after use. */
static sqlite3_stmt *start(struct sql_db *db, enum sql sql, const struct sql_param *params,
                           size_t n, const char *doing, struct error *err)
{
    sqlite3_stmt **statement = &db->statements[sql];
    if (*statement == NULL &&
        sqlite3_prepare_v3(db->handle, texts[sql], -1, SQLITE_PREPARE_PERSISTENT, statement,
                           NULL) != SQLITE_OK) {
        sql_error(db->handle, doing, err);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (bind(*statement, (int)i + 1, &params[i]) != SQLITE_OK) {
            sql_error(db->handle, doing, err);
            return NULL;
        }
    return *statement;
}

/* The parameters were borrowed: nothing may be left that points at them. */
static void finish(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

int sql_run(struct sql_db *db, enum sql sql, const struct sql_param *params, size_t n,
            const char *doing, struct error *err)
{
    return sql_each(db, sql, params, n, NULL, NULL, doing, err);
}

int sql_each(struct sql_db *db, enum sql sql, const struct sql_param *params, size_t n,
             int (*row)(void *ctx, sqlite3_stmt *row, struct error *err), void *ctx,
             const char *doing, struct error *err)
{
    sqlite3_stmt *statement = start(db, sql, params, n, doing, err);
    if (statement == NULL)
        return -1;
    int result = SQLITE_DONE, r = 0;
    while (r == 0 && (result = sqlite3_step(statement)) == SQLITE_ROW)
        if (row != NULL)
            r = row(ctx, statement, err);
    if (r == 0 && result != SQLITE_DONE)
        r = sql_error(db->handle, doing, err);
    finish(statement);
    return r;
}

void sql_release(struct sql_db *db)
{
    for (int i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(db->statements[i]);
    sqlite3_close(db->handle);
    *db = (struct sql_db){0};
}
