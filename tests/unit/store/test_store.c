/* SPDX-License-Identifier: Apache-2.0 */

#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "fixture.h"

static struct loaded loaded; /* too large for the stack */

static void put(struct store *store, const char *id, const char *name, uint64_t revision)
{
    struct store_sandbox row = make_sandbox(id, name);
    struct store_event event = make_event(revision);
    struct error err = {0};
    if (store_put_sandbox(store, &row, revision == 0 ? NULL : &event, &err) < 0)
        fail_msg("%s", err.message);
}

static void test_survives_reopening(void **state)
{
    struct fixture *f = *state;
    put(f->store, "idone", "one", 1);
    put(f->store, "idtwo", "two", 2);
    fixture_reopen(f);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 2);
    assert_int_equal(loaded.event_count, 2);
    assert_string_equal(loaded.names[0], "one");
    assert_string_equal(loaded.names[1], "two");
    assert_string_equal(loaded.statuses[0], "creating");
    assert_string_equal(loaded.events[1].id, "idtwo");
    assert_string_equal(loaded.events[1].type, "CREATE");
    assert_int_equal(loaded.env_len, 16);
    assert_memory_equal(loaded.env, "A=1\0B=two words\0", 16);
    assert_true(loaded.last.enabled);
    assert_int_equal(loaded.last.created_ms, 1000);
    assert_int_equal(loaded.last.updated_ms, 2000);
}

static int take_note(void *ctx, const char *id, const struct store_note *note, struct error *err)
{
    uint64_t *seen = ctx; /* count, first, last */
    assert_string_equal(id, "id");
    assert_int_equal(note->level, 1);
    assert_int_equal(note->time_ms, 5000 + (int64_t)note->number);
    assert_string_equal(note->message, "Starting sandbox...");
    if (seen[0]++ == 0)
        seen[1] = note->number;
    seen[2] = note->number;
    return 0;
}

static int has_status(void *ctx, const struct store_sandbox *row, struct error *err)
{
    assert_string_equal(row->status, ctx);
    assert_false(row->interrupted);
    return 0;
}

static int skip_sandbox(void *ctx, const struct store_sandbox *row, struct error *err)
{
    return 0;
}

static void notes_are(struct store *store, uint64_t count, uint64_t first, uint64_t last)
{
    uint64_t seen[3] = {0};
    struct store_load callbacks = {.sandbox = skip_sandbox, .note = take_note, .ctx = seen};
    assert_int_equal(store_load_all(store, &callbacks, NULL), 0);
    assert_int_equal(seen[0], count);
    assert_int_equal(seen[1], first);
    assert_int_equal(seen[2], last);
}

static void test_keeps_the_newest_notes(void **state)
{
    struct fixture *f = *state;
    put(f->store, "id", "box", 1);
    for (uint64_t i = 1; i <= 3 * NOTES_KEPT_MAX; i += 2) {
        const struct store_note notes[] = {{i, 5000 + (int64_t)i, 1, "Starting sandbox..."},
                                           {i + 1, 5001 + (int64_t)i, 1, "Starting sandbox..."}};
        assert_int_equal(store_add_notes(f->store, "id", notes, 2, NULL), 0);
    }
    fixture_reopen(f);
    notes_are(f->store, NOTES_KEPT_MAX, 2 * NOTES_KEPT_MAX + 1, 3 * NOTES_KEPT_MAX);
    assert_int_equal(store_delete_sandbox(f->store, "id", NULL), 0);
    put(f->store, "id", "box", 2); /* the same id: nothing of the first is left */
    notes_are(f->store, 0, 0, 0);
    const struct store_note lost = {1, 5001, 1, "Starting sandbox..."};
    assert_int_equal(store_add_notes(f->store, "other", &lost, 1, NULL), -1);
}

static void test_words_and_revision(void **state)
{
    struct fixture *f = *state;
    struct store_sandbox row = make_sandbox("id", "box");
    uint64_t revision;
    row.labels = (struct slice){"team=a\0run=7\0", 13};
    row.external_id = "ext";
    row.display_name = "Box";
    row.blaxel_spec = "{}";
    row.clone_of = "source";
    row.revision = 77;
    row.unsettled = row.interrupted = true;
    row.restart = "always";
    assert_int_equal(store_put_sandbox(f->store, &row, NULL, NULL), 0);
    fixture_reopen(f);
    load(f->store, &loaded);
    assert_string_equal(loaded.words, "team=a ext Box {} source");
    assert_int_equal(loaded.last.labels.len, 13);
    assert_int_equal(loaded.last.revision, 77);
    assert_true(loaded.last.unsettled && loaded.last.interrupted);
    /* Given out without an event, and all the same not to be used again. */
    assert_int_equal(store_last_revision(f->store, &revision, NULL), 0);
    assert_int_equal(revision, 77);

    row = make_sandbox("id", "box");
    assert_int_equal(store_put_sandbox(f->store, &row, NULL, NULL), 0);
    load(f->store, &loaded);
    assert_string_equal(loaded.words, "(null) - - - -");
    assert_false(loaded.last.unsettled || loaded.last.interrupted);
}

static void test_stops_all(void **state)
{
    static const struct {
        const char *before, *after;
    } rows[] = {{"running", "stopped"}, {"paused", "stopped"},    {"stopped", "stopped"},
                {"failed", "failed"},   {"creating", "creating"}, {"resuming", "stopped"}};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct store_sandbox row = make_sandbox("id", "box");
        row.status = rows[i].before;
        row.interrupted = true;
        assert_int_equal(store_put_sandbox(f->store, &row, NULL, NULL), 0);
        assert_int_equal(store_stop_sandboxes(f->store, NULL), 0);
        struct store_load callbacks = {.sandbox = has_status, .ctx = (void *)rows[i].after};
        assert_int_equal(store_load_all(f->store, &callbacks, NULL), 0);
    }
}

static void test_replaces(void **state)
{
    struct fixture *f = *state;
    put(f->store, "id", "box", 1);
    struct store_sandbox row = make_sandbox("id", "box");
    row.status = "running";
    row.enabled = false;
    row.cpu = NULL;
    row.created_by = NULL;
    row.env = (struct slice){NULL, 0};
    row.updated_ms = 5000;
    assert_int_equal(store_put_sandbox(f->store, &row, NULL, NULL), 0);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 1);
    assert_int_equal(loaded.event_count, 1); /* the event that was there is still there */
    assert_string_equal(loaded.statuses[0], "running");
    assert_false(loaded.last.enabled);
    assert_true(loaded.last_cpu_is_null);
    assert_int_equal(loaded.env_len, 0);
    assert_int_equal(loaded.last.updated_ms, 5000);
}

static void test_names_are_unique_in_a_workspace(void **state)
{
    struct fixture *f = *state;
    put(f->store, "idone", "box", 1);
    put(f->store, "idtwo", "other", 2);
    struct store_sandbox row = make_sandbox("idthree", "box");
    struct store_event event = make_event(3);
    struct error err = {0};
    assert_int_equal(store_put_sandbox(f->store, &row, &event, &err), -1);
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);
    assert_string_equal(err.message, "a sandbox named \"box\" exists in the workspace \"default\"");
    row = make_sandbox("idtwo", "box"); /* renaming to it neither */
    assert_int_equal(store_put_sandbox(f->store, &row, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);

    row = make_sandbox("idthree", "box");
    row.workspace = "elsewhere";
    assert_int_equal(store_put_sandbox(f->store, &row, &event, &err), -1);
    assert_int_equal(err.code, ERROR_WORKSPACE_NOT_FOUND);
    const struct store_workspace elsewhere = {
        .name = "elsewhere", .created_ms = 1, .created_by = "admin"};
    assert_int_equal(store_add_workspace(f->store, &elsewhere, &err), 0);
    assert_int_equal(store_put_sandbox(f->store, &row, &event, &err), 0);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 3);
    assert_int_equal(loaded.event_count, 3); /* nothing is left of what failed */
}

static void test_name_is_free_after_deletion(void **state)
{
    struct fixture *f = *state;
    put(f->store, "idone", "box", 1);
    assert_int_equal(store_delete_sandbox(f->store, "idone", NULL), 0);
    put(f->store, "idtwo", "box", 2);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 1);
    assert_int_equal(loaded.event_count, 1);
    assert_string_equal(loaded.ids[0], "idtwo");
}

static void test_delete(void **state)
{
    struct fixture *f = *state;
    put(f->store, "idone", "one", 1);
    put(f->store, "idtwo", "two", 2);
    assert_int_equal(store_delete_sandbox(f->store, "idone", NULL), 0);
    assert_int_equal(store_delete_sandbox(f->store, "idone", NULL), 0);
    assert_int_equal(store_delete_sandbox(f->store, "never-there", NULL), 0);
    fixture_reopen(f);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 1);
    assert_int_equal(loaded.event_count, 1);
    assert_string_equal(loaded.ids[0], "idtwo");
}

static void test_failed_put_changes_nothing(void **state)
{
    struct fixture *f = *state;
    put(f->store, "id", "box", 7);
    struct store_sandbox row = make_sandbox("id", "box");
    row.status = "running";
    struct store_event event = make_event(7); /* that revision is taken */
    struct error err = {0};
    assert_int_equal(store_put_sandbox(f->store, &row, &event, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    row.image = NULL; /* which the schema does not allow */
    assert_int_equal(store_put_sandbox(f->store, &row, NULL, &err), -1);
    load(f->store, &loaded);
    assert_string_equal(loaded.statuses[0], "creating");
    put(f->store, "id", "box", 8); /* and the store goes on */
}

static void test_several_or_none(void **state)
{
    struct fixture *f = *state;
    put(f->store, "idone", "one", 1);
    put(f->store, "idtwo", "two", 2);
    struct store_sandbox rows[] = {make_sandbox("idone", "one"), make_sandbox("idtwo", "two")};
    struct store_event events[] = {make_event(3), make_event(2)}; /* the second one is taken */
    struct error err = {0};
    rows[0].status = rows[1].status = "running";
    assert_int_equal(store_put_sandboxes(f->store, rows, events, 2, &err), -1);
    fixture_reopen(f);
    load(f->store, &loaded);
    assert_string_equal(loaded.statuses[0], "creating");
    assert_string_equal(loaded.statuses[1], "creating");
    assert_int_equal(loaded.event_count, 2);
    events[1] = make_event(4);
    assert_int_equal(store_put_sandboxes(f->store, rows, events, 2, &err), 0);
    assert_int_equal(store_put_sandboxes(f->store, rows, events, 0, &err), 0);
    fixture_reopen(f);
    load(f->store, &loaded);
    assert_string_equal(loaded.statuses[0], "running");
    assert_string_equal(loaded.statuses[1], "running");
    assert_int_equal(loaded.event_count, 4);
}

static void test_events_are_capped(void **state)
{
    struct fixture *f = *state;
    put(f->store, "other", "other", 1);
    for (uint64_t revision = 2; revision <= EVENTS_KEPT_MAX + 51; revision++)
        put(f->store, "id", "box", revision);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 2);
    assert_int_equal(loaded.event_count, EVENTS_KEPT_MAX + 1);
    assert_string_equal(loaded.events[0].id, "id");
    for (size_t i = 0; i < EVENTS_KEPT_MAX; i++) /* the newest, oldest first */
        assert_int_equal(loaded.events[i].revision, 52 + i);
    assert_string_equal(loaded.events[EVENTS_KEPT_MAX].id, "other"); /* not touched */
}

static void test_revisions_are_never_reused(void **state)
{
    struct fixture *f = *state;
    uint64_t revision = 99;
    assert_int_equal(store_last_revision(f->store, &revision, NULL), 0);
    assert_int_equal(revision, 0);
    put(f->store, "idone", "one", 5);
    put(f->store, "idtwo", "two", 3); /* out of order: the highest counts */
    put(f->store, "idtwo", "two", 0);
    assert_int_equal(store_delete_sandbox(f->store, "idone", NULL), 0);
    assert_int_equal(store_delete_sandbox(f->store, "idtwo", NULL), 0);
    fixture_reopen(f);
    assert_int_equal(store_last_revision(f->store, &revision, NULL), 0);
    assert_int_equal(revision, 5);
}

static int refuse_sandbox(void *ctx, const struct store_sandbox *row, struct error *err)
{
    (*(int *)ctx)++;
    return error_set(err, ERROR_CANCELLED, "enough");
}

static void test_load_stops_at_an_error(void **state)
{
    struct fixture *f = *state;
    int calls = 0;
    struct error err = {0};
    put(f->store, "idone", "one", 1);
    put(f->store, "idtwo", "two", 2);
    const struct store_load callbacks = {refuse_sandbox, NULL, &calls};
    assert_int_equal(store_load_all(f->store, &callbacks, &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    assert_int_equal(calls, 1);
    put(f->store, "idthree", "three", 3); /* nothing is left open */
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 3);
}

struct keys {
    size_t count;
    struct store_key keys[8];
};

static int take_key(void *ctx, const struct store_key *key, struct error *err)
{
    struct keys *keys = ctx;
    assert_true(keys->count < ARRAY_LEN(keys->keys));
    keys->keys[keys->count++] = *key;
    return 0;
}

static struct store_key make_key(char c, const char *name, int64_t created_ms)
{
    struct store_key key = {.id = {c}, .workspace = "default", .scopes = 6};
    key.created_ms = created_ms;
    memset(key.hash, c, sizeof(key.hash) - 1);
    snprintf(key.name, sizeof(key.name), "%s", name);
    return key;
}

static void test_keys(void **state)
{
    struct fixture *f = *state;
    struct keys keys = {0};
    struct error err = {0};
    struct store_key one = make_key('a', "first", 1), two = make_key('b', "other", 2),
                     three = make_key('c', "first", 3);
    snprintf(one.hint, sizeof(one.hint), "cella_abcd");
    snprintf(one.created_by, sizeof(one.created_by), "somebody");
    one.expires_ms = 77;
    assert_int_equal(store_put_key(f->store, &one, NULL), 0);
    assert_int_equal(store_put_key(f->store, &one, NULL), 0);
    assert_int_equal(store_put_key(f->store, &two, NULL), 0);
    assert_int_equal(store_put_key(f->store, &three, &err), -1);
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);
    snprintf(three.workspace, sizeof(three.workspace), "nowhere");
    assert_int_equal(store_put_key(f->store, &three, &err), -1);
    assert_int_equal(err.code, ERROR_WORKSPACE_NOT_FOUND);
    assert_int_equal(store_use_key(f->store, "a", 99, NULL), 0);
    fixture_reopen(f);
    assert_int_equal(store_load_keys(f->store, take_key, &keys, NULL), 0);
    assert_int_equal(keys.count, 2);
    assert_string_equal(keys.keys[0].id, "a");
    assert_string_equal(keys.keys[0].hash, one.hash);
    assert_string_equal(keys.keys[0].hint, "cella_abcd");
    assert_string_equal(keys.keys[0].name, "first");
    assert_string_equal(keys.keys[0].workspace, "default");
    assert_string_equal(keys.keys[0].created_by, "somebody");
    assert_int_equal(keys.keys[0].scopes, 6);
    assert_int_equal(keys.keys[0].created_ms, 1);
    assert_int_equal(keys.keys[0].expires_ms, 77);
    assert_int_equal(keys.keys[0].last_used_ms, 99);

    assert_int_equal(store_delete_key(f->store, "a", NULL), 0);
    assert_int_equal(store_delete_key(f->store, "a", NULL), 0); /* gone is gone */
    keys.count = 0;
    assert_int_equal(store_load_keys(f->store, take_key, &keys, NULL), 0);
    assert_int_equal(keys.count, 1);
    assert_string_equal(keys.keys[0].name, "other");
}

/* The key of an id that exists is another one afterwards, as old as it was. */
static void test_key_is_replaced(void **state)
{
    struct fixture *f = *state;
    struct keys keys = {0};
    struct store_key one = make_key('a', "admin", 1), next = make_key('b', "admin", 5);
    next.id[0] = 'a';
    assert_int_equal(store_put_key(f->store, &one, NULL), 0);
    assert_int_equal(store_put_key(f->store, &next, NULL), 0);
    assert_int_equal(store_load_keys(f->store, take_key, &keys, NULL), 0);
    assert_int_equal(keys.count, 1);
    assert_string_equal(keys.keys[0].hash, next.hash);
    assert_int_equal(keys.keys[0].created_ms, 1);
}

struct workspaces {
    size_t count;
    char names[8][64];
    char created_by[8][64];
    char limits[8][64];
};

static int take_workspace(void *ctx, const struct store_workspace *row, struct error *err)
{
    struct workspaces *all = ctx;
    assert_true(all->count < ARRAY_LEN(all->names));
    snprintf(all->names[all->count], 64, "%s", row->name);
    snprintf(all->limits[all->count], 64, "%s/%s", row->rates, row->quotas);
    snprintf(all->created_by[all->count++], 64, "%s", row->created_by);
    return 0;
}

static void test_workspaces(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct workspaces all = {0};
    const struct store_workspace blue = {.name = "blue", .created_ms = 5, .created_by = "admin"};
    assert_int_equal(store_add_workspace(f->store, &blue, &err), 0);
    assert_int_equal(store_add_workspace(f->store, &blue, &err), -1);
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);
    assert_int_equal(store_set_workspace_limits(f->store, "blue", "exec=1", "streams=2", &err), 0);
    assert_int_equal(store_set_workspace_limits(f->store, "nobody", "x", "y", &err), 0);
    fixture_reopen(f);
    assert_int_equal(store_load_workspaces(f->store, take_workspace, &all, NULL), 0);
    assert_string_equal(all.limits[0], "exec=1/streams=2");
    assert_string_equal(all.limits[1], "/");
    assert_int_equal(all.count, 2);
    assert_string_equal(all.names[0], "blue");
    assert_string_equal(all.created_by[0], "admin");
    assert_string_equal(all.names[1], "default");
    assert_string_equal(all.created_by[1], "");
}

static void test_workspace_goes_when_it_is_empty(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct keys keys = {0};
    const struct store_workspace blue = {.name = "blue", .created_ms = 5, .created_by = "admin"};
    struct store_key key = make_key('a', "one", 1);
    snprintf(key.workspace, sizeof(key.workspace), "blue");
    assert_int_equal(store_add_workspace(f->store, &blue, NULL), 0);
    assert_int_equal(store_put_key(f->store, &key, NULL), 0);
    struct store_sandbox row = make_sandbox("idone", "box");
    row.workspace = "blue";
    assert_int_equal(store_put_sandbox(f->store, &row, NULL, NULL), 0);

    assert_int_equal(store_delete_workspace(f->store, "blue", &err), -1);
    assert_int_equal(err.code, ERROR_WORKSPACE_NOT_EMPTY);
    assert_non_null(strstr(err.message, "1 sandbox:"));
    assert_int_equal(store_load_keys(f->store, take_key, &keys, NULL), 0);
    assert_int_equal(keys.count, 1); /* nothing was done by halves */

    assert_int_equal(store_delete_sandbox(f->store, "idone", NULL), 0);
    assert_int_equal(store_delete_workspace(f->store, "blue", &err), 0);
    keys.count = 0;
    assert_int_equal(store_load_keys(f->store, take_key, &keys, NULL), 0);
    assert_int_equal(keys.count, 0);
    assert_int_equal(store_put_sandbox(f->store, &row, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_WORKSPACE_NOT_FOUND);
}

static void test_secret_stays(void **state)
{
    struct fixture *f = *state;
    char one[4] = "abc", two[4] = "xyz", longer[8] = "0123456";
    assert_int_equal(store_secret(f->store, "s", one, sizeof(one), NULL), 0);
    assert_string_equal(one, "abc");
    fixture_reopen(f);
    assert_int_equal(store_secret(f->store, "s", two, sizeof(two), NULL), 0);
    assert_string_equal(two, "abc");
    assert_int_equal(store_secret(f->store, "s", longer, sizeof(longer), NULL), -1);
    assert_string_equal(longer, "0123456");
}

/* Writes sandboxes for ever, and a byte to fd after each. */
static void put_until_killed(const char *path, int fd)
{
    struct store *store;
    if (store_open(NULL, path, false, &store, NULL) < 0)
        _exit(1);
    for (unsigned i = 1;; i++) {
        char name[16];
        snprintf(name, sizeof(name), "box-%u", i);
        struct store_sandbox row = make_sandbox(name, name);
        struct store_event event = make_event(i);
        row.created_ms = i;
        if (store_put_sandbox(store, &row, &event, NULL) < 0 || write(fd, "x", 1) != 1)
            _exit(2);
    }
}

static void test_kill_loses_nothing_acknowledged(void **state)
{
    struct fixture *f = *state;
    for (int round = 1; round <= 3; round++) {
        int pipe_fds[2];
        assert_int_equal(pipe(pipe_fds), 0);
        store_close(f->store);
        f->store = NULL;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(pipe_fds[0]);
            put_until_killed(f->path, pipe_fds[1]);
        }
        close(pipe_fds[1]);
        /* In the middle of whatever it is doing after so many. */
        size_t acknowledged = 0;
        char byte;
        while (acknowledged < 100u * (unsigned)round && read(pipe_fds[0], &byte, 1) == 1)
            acknowledged++;
        assert_int_equal(acknowledged, 100 * round);
        kill(pid, SIGKILL);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        while (read(pipe_fds[0], &byte, 1) == 1)
            acknowledged++;
        close(pipe_fds[0]);

        struct error err = {0};
        if (store_open(NULL, f->path, false, &f->store, &err) < 0)
            fail_msg("%s", err.message);
        load(f->store, &loaded);
        assert_in_range(loaded.sandbox_count, acknowledged, acknowledged + 1);
        assert_int_equal(loaded.event_count, loaded.sandbox_count); /* both or neither */
        uint64_t revision;
        assert_int_equal(store_last_revision(f->store, &revision, NULL), 0);
        assert_int_equal(revision, loaded.sandbox_count);
        /* The next round begins at revision 1 again, in a database of its own. */
        fixture_teardown(state);
        fixture_setup(state);
        f = *state;
    }
}

static void test_read_only_beside_a_writer(void **state)
{
    struct fixture *f = *state;
    struct store *reader;
    struct error err = {0};
    put(f->store, "idone", "one", 1);
    assert_int_equal(store_open(NULL, f->path, true, &reader, &err), 0);
    load(reader, &loaded);
    assert_int_equal(loaded.sandbox_count, 1);
    put(f->store, "idtwo", "two", 2); /* the reader holds nothing up … */
    load(reader, &loaded);            /* … and sees what was written */
    assert_int_equal(loaded.sandbox_count, 2);

    struct store_sandbox row = make_sandbox("idthree", "three");
    assert_int_equal(store_put_sandbox(reader, &row, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_PERMISSION_DENIED);
    store_close(reader);
    put(f->store, "idthree", "three", 3);
}

static void test_files_are_private(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    struct fixture *f = *state;
    put(f->store, "id", "box", 1);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        char path[128];
        struct stat st;
        snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

static void test_cannot_open(void **state)
{
    struct fixture *f = *state;
    struct store *store = NULL;
    struct error err = {0};
    char path[128];
    snprintf(path, sizeof(path), "%s/none.db", f->dir);
    assert_int_equal(store_open(NULL, path, true, &store, &err), -1);
    assert_int_equal(err.code, ERROR_FILE_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    snprintf(path, sizeof(path), "%s/no/such/folder.db", f->dir);
    assert_int_equal(store_open(NULL, path, false, &store, &err), -1);
    assert_int_equal(err.code, ERROR_FILE_NOT_FOUND);
    assert_null(store);
    store_close(NULL);
}

static void test_not_a_database(void **state)
{
    struct fixture *f = *state;
    char path[128];
    snprintf(path, sizeof(path), "%s/text.db", f->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        fputs("this is not a database\n", file);
    fclose(file);
    struct store *store;
    struct error err = {0};
    int result = store_open(NULL, path, false, &store, &err);
    unlink(path);
    assert_int_equal(result, -1);
    assert_int_equal(err.code, ERROR_INTERNAL);
    assert_non_null(strstr(err.message, "not a database"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_survives_reopening),
        TEST(test_words_and_revision),
        TEST(test_stops_all),
        TEST(test_replaces),
        TEST(test_keeps_the_newest_notes),
        TEST(test_names_are_unique_in_a_workspace),
        TEST(test_name_is_free_after_deletion),
        TEST(test_delete),
        TEST(test_failed_put_changes_nothing),
        TEST(test_several_or_none),
        TEST(test_events_are_capped),
        TEST(test_revisions_are_never_reused),
        TEST(test_load_stops_at_an_error),
        TEST(test_keys),
        TEST(test_key_is_replaced),
        TEST(test_workspaces),
        TEST(test_workspace_goes_when_it_is_empty),
        TEST(test_secret_stays),
        TEST(test_kill_loses_nothing_acknowledged),
        TEST(test_read_only_beside_a_writer),
        TEST(test_files_are_private),
        TEST(test_cannot_open),
        TEST(test_not_a_database),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
