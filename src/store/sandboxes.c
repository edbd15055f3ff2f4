/* SPDX-License-Identifier: Apache-2.0 */

/* Sandboxes and their events, to and from rows. */

#include "store/store.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "store/state.h"

struct put {
    const struct store_sandbox *row;
    const struct store_event *event;
};

/* It was used, and is not used again. */
static int give_revision(struct sql_db *db, uint64_t revision, struct error *err)
{
    const struct sql_param given[] = {PARAM_INT((int64_t)revision)};
    return sql_run(db, SQL_REVISION_GIVEN, given, ARRAY_LEN(given), "storing a revision", err);
}

/* What RAISE() says tells the triggers apart. */
static void refused_by_trigger(struct sql_db *db, const struct store_sandbox *row,
                               struct error *err)
{
    if (strcmp(sqlite3_errmsg(db->handle), "no such group") == 0)
        error_set(err, ERROR_GROUP_NOT_FOUND, "there is no group for the sandbox \"%s\"",
                  row->name);
    else
        error_set(err, ERROR_WORKSPACE_NOT_FOUND, "there is no workspace \"%s\"", row->workspace);
}

static int put_row(struct sql_db *db, const struct store_sandbox *row, struct error *err)
{
    struct slice labels = row->labels.data == NULL ? slice_of("") : row->labels;
    struct slice resources = row->resources.data == NULL ? slice_of("") : row->resources;
    struct slice auto_lower = row->auto_lower.data == NULL ? slice_of("") : row->auto_lower;
    struct slice history = row->history.data == NULL ? slice_of("") : row->history;
    struct slice network = row->network.data == NULL ? slice_of("") : row->network;
    const struct sql_param params[] = {
        PARAM_TEXT(row->id),
        PARAM_TEXT(row->workspace),
        PARAM_TEXT(row->name),
        PARAM_TEXT(row->status),
        PARAM_TEXT(row->image),
        PARAM_TEXT(row->cpu),
        PARAM_TEXT(row->memory),
        PARAM_TEXT(row->disk),
        PARAM_BYTES(row->env),
        PARAM_INT(row->enabled),
        PARAM_INT(row->created_ms),
        PARAM_INT(row->updated_ms),
        PARAM_TEXT(row->created_by),
        PARAM_TEXT(row->updated_by),
        PARAM_BYTES(labels),
        PARAM_TEXT(row->external_id),
        PARAM_TEXT(row->display_name),
        PARAM_TEXT(row->blaxel_spec),
        PARAM_INT((int64_t)row->revision),
        PARAM_TEXT(row->clone_of),
        PARAM_INT(row->unsettled),
        PARAM_TEXT(row->trust_level),
        PARAM_TEXT(row->security),
        PARAM_BYTES(resources),
        PARAM_BYTES(auto_lower),
        PARAM_BYTES(network),
        PARAM_TEXT(row->e2b_spec),
        PARAM_BYTES(history),
        PARAM_TEXT(row->restart),
        PARAM_INT(row->interrupted),
    };
    if (sql_run(db, SQL_SANDBOX_PUT, params, ARRAY_LEN(params), "storing a sandbox", err) == 0)
        return give_revision(db, row->revision, err);
    int why = sqlite3_extended_errcode(db->handle);
    /* The only UNIQUE constraint besides the id, which the statement takes care of. */
    if (why == SQLITE_CONSTRAINT_UNIQUE)
        error_set(err, ERROR_ALREADY_EXISTS,
                  "a sandbox named \"%s\" exists in the workspace \"%s\"", row->name,
                  row->workspace);
    else if (why == SQLITE_CONSTRAINT_TRIGGER)
        refused_by_trigger(db, row, err);
    return -1;
}

static int add_event(struct sql_db *db, const char *id, const struct store_event *event,
                     struct error *err)
{
    static const char doing[] = "storing an event";
    const struct sql_param params[] = {
        PARAM_TEXT(id),
        PARAM_INT((int64_t)event->revision),
        PARAM_TEXT(event->type),
        PARAM_TEXT(event->status),
        PARAM_TEXT(event->message),
        PARAM_INT(event->time_ms),
    };
    const struct sql_param trim[] = {PARAM_TEXT(id), PARAM_INT(EVENTS_KEPT_MAX)};
    if (sql_run(db, SQL_EVENT_ADD, params, ARRAY_LEN(params), doing, err) < 0 ||
        sql_run(db, SQL_EVENT_TRIM, trim, ARRAY_LEN(trim), doing, err) < 0)
        return -1;
    return give_revision(db, event->revision, err);
}

int store_put_sandbox_in(struct sql_db *db, const struct store_sandbox *row,
                         const struct store_event *event, struct error *err)
{
    if (put_row(db, row, err) < 0 ||
        (row->lifespan != NULL && store_write_lifespan(db, row->id, row->lifespan, err) < 0))
        return -1;
    return event == NULL ? 0 : add_event(db, row->id, event, err);
}

static int put_sandbox(struct sql_db *db, void *arg, struct error *err)
{
    const struct put *put = arg;
    return store_put_sandbox_in(db, put->row, put->event, err);
}

int store_put_sandbox(struct store *store, const struct store_sandbox *row,
                      const struct store_event *event, struct error *err)
{
    struct put put = {row, event};
    if (strcmp(row->status, "deleting") == 0)
        return store_change_removal(store, put_sandbox, &put, err);
    return store_change(store, put_sandbox, &put, err);
}

struct put_all {
    const struct store_sandbox *rows;
    const struct store_event *events;
    size_t count;
};

static int put_sandboxes(struct sql_db *db, void *arg, struct error *err)
{
    const struct put_all *put = arg;
    for (size_t i = 0; i < put->count; i++)
        if (store_put_sandbox_in(db, &put->rows[i], &put->events[i], err) < 0)
            return -1;
    return 0;
}

int store_put_sandboxes(struct store *store, const struct store_sandbox *rows,
                        const struct store_event *events, size_t count, struct error *err)
{
    struct put_all put = {rows, events, count};
    return store_change(store, put_sandboxes, &put, err);
}

struct add_notes {
    const char *id;
    const struct store_note *notes;
    size_t count;
};

static int add_notes(struct sql_db *db, void *arg, struct error *err)
{
    static const char doing[] = "storing a log";
    const struct add_notes *add = arg;
    for (size_t i = 0; i < add->count; i++) {
        const struct store_note *note = &add->notes[i];
        const struct sql_param params[] = {
            PARAM_TEXT(add->id),       PARAM_INT((int64_t)note->number),
            PARAM_INT(note->time_ms),  PARAM_INT((int64_t)note->level),
            PARAM_TEXT(note->message),
        };
        if (sql_run(db, SQL_NOTE_ADD, params, ARRAY_LEN(params), doing, err) < 0)
            return -1;
    }
    if (add->count == 0 || add->notes[add->count - 1].number <= NOTES_KEPT_MAX)
        return 0;
    const struct sql_param trim[] = {
        PARAM_TEXT(add->id),
        PARAM_INT((int64_t)add->notes[add->count - 1].number - NOTES_KEPT_MAX)};
    return sql_run(db, SQL_NOTE_TRIM, trim, ARRAY_LEN(trim), doing, err);
}

int store_add_notes(struct store *store, const char *id, const struct store_note *notes,
                    size_t count, struct error *err)
{
    struct add_notes add = {id, notes, count};
    return store_change(store, add_notes, &add, err);
}

static int delete_sandbox(struct sql_db *db, void *arg, struct error *err)
{
    static const char doing[] = "deleting a sandbox";
    const struct sql_param params[] = {PARAM_TEXT((const char *)arg)};
    if (sql_run(db, SQL_SPARE_DELETE, params, 1, doing, err) < 0)
        return -1;
    return sql_run(db, SQL_SANDBOX_DELETE, params, 1, doing, err);
}

int store_delete_sandbox(struct store *store, const char *id, struct error *err)
{
    if (store_change_removal(store, delete_sandbox, (void *)id, err) < 0)
        return -1;
    store_forget(store);
    return 0;
}

static int stop_sandboxes(struct sql_db *db, void *arg, struct error *err)
{
    return sql_run(db, SQL_SANDBOX_STOP_ALL, NULL, 0, "stopping sandboxes", err);
}

int store_stop_sandboxes(struct store *store, struct error *err)
{
    return store_change(store, stop_sandboxes, NULL, err);
}

/* --- reading --- */

static const char *text(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static struct slice bytes(sqlite3_stmt *row, int column)
{
    const char *data = sqlite3_column_blob(row, column);
    return (struct slice){data, (size_t)sqlite3_column_bytes(row, column)};
}

struct load {
    struct sql_db *db;
    const struct store_load *to;
    const char *id; /* of the sandbox whose events come */
};

static int load_event(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    const struct store_event event = {
        .type = text(row, 0),
        .status = text(row, 1),
        .message = text(row, 2),
        .time_ms = sqlite3_column_int64(row, 3),
        .revision = (uint64_t)sqlite3_column_int64(row, 4),
    };
    return load->to->event(load->to->ctx, load->id, &event, err);
}

static int load_note(void *ctx, sqlite3_stmt *row, struct error *err)
{
    const struct load *load = ctx;
    const struct store_note note = {
        .number = (uint64_t)sqlite3_column_int64(row, 0),
        .time_ms = sqlite3_column_int64(row, 1),
        .level = (uint64_t)sqlite3_column_int64(row, 2),
        .message = text(row, 3),
    };
    return load->to->note(load->to->ctx, load->id, &note, err);
}

/* The events and the log of the sandbox that was loaded last. */
static int load_story(struct load *load, struct error *err)
{
    const struct sql_param params[] = {PARAM_TEXT(load->id)};
    if (load->to->event != NULL &&
        sql_each(load->db, SQL_EVENTS_OF, params, 1, load_event, load, "loading events", err) < 0)
        return -1;
    if (load->to->note == NULL)
        return 0;
    return sql_each(load->db, SQL_NOTES_OF, params, 1, load_note, load, "loading a log", err);
}

static int load_sandbox(void *ctx, sqlite3_stmt *row, struct error *err)
{
    struct load *load = ctx;
    const struct store_sandbox sandbox = {
        .id = text(row, 0),
        .workspace = text(row, 1),
        .name = text(row, 2),
        .status = text(row, 3),
        .image = text(row, 4),
        .cpu = text(row, 5),
        .memory = text(row, 6),
        .disk = text(row, 7),
        .env = bytes(row, 8),
        .enabled = sqlite3_column_int(row, 9) != 0,
        .created_ms = sqlite3_column_int64(row, 10),
        .updated_ms = sqlite3_column_int64(row, 11),
        .created_by = text(row, 12),
        .updated_by = text(row, 13),
        .labels = bytes(row, 14),
        .external_id = text(row, 15),
        .display_name = text(row, 16),
        .blaxel_spec = text(row, 17),
        .revision = (uint64_t)sqlite3_column_int64(row, 18),
        .clone_of = text(row, 19),
        .unsettled = sqlite3_column_int(row, 20) != 0,
        .trust_level = text(row, 21),
        .security = text(row, 22),
        .resources = bytes(row, 23),
        .auto_lower = bytes(row, 24),
        .network = bytes(row, 25),
        .e2b_spec = text(row, 26),
        .history = bytes(row, 27),
        .restart = text(row, 28),
        .interrupted = sqlite3_column_int(row, 29) != 0,
    };
    if (load->to->sandbox(load->to->ctx, &sandbox, err) < 0)
        return -1;
    load->id = sandbox.id;
    return load_story(load, err);
}

static int load_all(struct sql_db *db, void *arg, struct error *err)
{
    struct load load = {db, arg, NULL};
    return sql_each(db, SQL_SANDBOX_ALL, NULL, 0, load_sandbox, &load, "loading sandboxes", err);
}

int store_load_all(struct store *store, const struct store_load *load, struct error *err)
{
    return store_read(store, load_all, (void *)load, err);
}

static int take_revision(void *ctx, sqlite3_stmt *row, struct error *err)
{
    *(uint64_t *)ctx = (uint64_t)sqlite3_column_int64(row, 0);
    return 0;
}

static int last_revision(struct sql_db *db, void *arg, struct error *err)
{
    return sql_each(db, SQL_REVISION_LAST, NULL, 0, take_revision, arg, "reading the revision",
                    err);
}

int store_last_revision(struct store *store, uint64_t *ret_revision, struct error *err)
{
    return store_read(store, last_revision, ret_revision, err);
}
