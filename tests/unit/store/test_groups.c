/* SPDX-License-Identifier: Apache-2.0 */

#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "fixture.h"

static struct loaded loaded;

struct seen {
    size_t count;
    char names[8][32];
    char spec[64];
    bool ending;
    int64_t updated_ms;
};

static int see(void *ctx, const struct store_group *row, struct error *err)
{
    struct seen *seen = ctx;
    snprintf(seen->names[seen->count++], sizeof(seen->names[0]), "%s", row->name);
    snprintf(seen->spec, sizeof(seen->spec), "%s", row->spec);
    seen->ending = row->ending;
    seen->updated_ms = row->updated_ms;
    return 0;
}

static struct seen look(struct store *store)
{
    struct seen seen = {0};
    struct error err = {0};
    if (store_load_groups(store, see, &seen, &err) < 0)
        fail_msg("%s", err.message);
    return seen;
}

static struct store_group make_group(const char *id, const char *name)
{
    return (struct store_group){.id = id,
                                .workspace = "default",
                                .name = name,
                                .spec = "{\"a\":1}",
                                .created_ms = 1,
                                .updated_ms = 2,
                                .created_by = "me",
                                .updated_by = "me"};
}

static int add(struct store *store, const char *id, const char *name, struct error *err)
{
    struct store_group row = make_group(id, name);
    return store_add_group(store, &row, NULL, NULL, 0, err);
}

static void test_come_back_with_their_sandboxes(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_group row = make_group("g1", "team");
    struct store_sandbox boxes[] = {make_sandbox("id1", "team/a"), make_sandbox("id2", "team/b")};
    struct store_event events[] = {make_event(1), make_event(2)};
    assert_int_equal(store_add_group(f->store, &row, boxes, events, 2, &err), 0);
    row.ending = true;
    row.updated_ms = 9;
    assert_int_equal(store_put_group(f->store, &row, &err), 0);
    fixture_reopen(f);
    struct seen seen = look(f->store);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.names[0], "team");
    assert_string_equal(seen.spec, "{\"a\":1}");
    assert_true(seen.ending);
    assert_int_equal(seen.updated_ms, 9);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 2);
    assert_int_equal(loaded.event_count, 2);
    assert_string_equal(loaded.names[0], "team/a");
}

static void test_all_or_none(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_group row = make_group("g1", "team");
    struct store_sandbox boxes[] = {make_sandbox("id1", "team/a"), make_sandbox("id2", "team/a")};
    struct store_event events[] = {make_event(1), make_event(2)};
    assert_int_equal(store_add_group(f->store, &row, boxes, events, 2, &err), -1);
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);
    load(f->store, &loaded);
    assert_int_equal(loaded.sandbox_count, 0);
    assert_int_equal(look(f->store).count, 0);
}

static void test_names(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    assert_int_equal(add(f->store, "g1", "team", &err), 0);
    assert_int_equal(add(f->store, "g2", "team", &err), -1);
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);
    struct store_group elsewhere = make_group("g3", "team");
    elsewhere.workspace = "nowhere";
    assert_int_equal(store_add_group(f->store, &elsewhere, NULL, NULL, 0, &err), -1);
    assert_int_equal(err.code, ERROR_WORKSPACE_NOT_FOUND);
    const struct store_workspace workspace = {.name = "nowhere", .created_ms = 1, .created_by = ""};
    assert_int_equal(store_add_workspace(f->store, &workspace, &err), 0);
    assert_int_equal(store_add_group(f->store, &elsewhere, NULL, NULL, 0, &err), 0);
}

static void test_sandbox_needs_its_group(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_sandbox inside = make_sandbox("id1", "team/a"), plain = make_sandbox("id2", "a");
    assert_int_equal(store_put_sandbox(f->store, &inside, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_GROUP_NOT_FOUND);
    assert_int_equal(store_put_sandbox(f->store, &plain, NULL, &err), 0);
    assert_int_equal(add(f->store, "g1", "team", &err), 0);
    assert_int_equal(store_put_sandbox(f->store, &inside, NULL, &err), 0);
}

static void test_group_stays_with_its_sandboxes(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_sandbox inside = make_sandbox("id1", "team/a");
    assert_int_equal(add(f->store, "g1", "team", &err), 0);
    assert_int_equal(add(f->store, "g2", "team-2", &err), 0);
    assert_int_equal(store_put_sandbox(f->store, &inside, NULL, &err), 0);
    assert_int_equal(store_delete_group(f->store, "g2", &err), 0);
    assert_int_equal(store_delete_group(f->store, "g1", &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_int_equal(look(f->store).count, 1);
    assert_int_equal(store_delete_sandbox(f->store, "id1", &err), 0);
    assert_int_equal(store_delete_group(f->store, "g1", &err), 0);
    assert_int_equal(store_delete_group(f->store, "g1", &err), 0);
    assert_int_equal(look(f->store).count, 0);
}

static void test_workspace_stays_with_its_groups(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    const struct store_workspace workspace = {.name = "mine", .created_ms = 1, .created_by = ""};
    struct store_group row = make_group("g1", "team");
    row.workspace = "mine";
    assert_int_equal(store_add_workspace(f->store, &workspace, &err), 0);
    assert_int_equal(store_add_group(f->store, &row, NULL, NULL, 0, &err), 0);
    assert_int_equal(store_delete_workspace(f->store, "mine", &err), -1);
    assert_int_equal(err.code, ERROR_WORKSPACE_NOT_EMPTY);
    assert_int_equal(store_delete_group(f->store, "g1", &err), 0);
    assert_int_equal(store_delete_workspace(f->store, "mine", &err), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_come_back_with_their_sandboxes),
        TEST(test_all_or_none),
        TEST(test_names),
        TEST(test_sandbox_needs_its_group),
        TEST(test_group_stays_with_its_sandboxes),
        TEST(test_workspace_stays_with_its_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
