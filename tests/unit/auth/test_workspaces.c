/* SPDX-License-Identifier: Apache-2.0 */

#include "auth/workspaces.h"

#include "fixture.h"

static enum error_code enter(struct fixture *f, const char *credential, const char *named,
                             const char *expected)
{
    struct principal who = fixture_caller(f, credential);
    struct error err = {0};
    const char *workspace = NULL;
    if (auth_workspace_enter(f->auth, &who, named, f->arena, &workspace, &err) < 0)
        return err.code;
    assert_string_equal(workspace, expected);
    return ERROR_NONE;
}

static void test_door(void **state)
{
    struct fixture *f = *state;
    static const char *const nowhere[] = {"red", "Blue",    "blue/", "blue ",
                                          "v0",  "../blue", "bluee"};
    assert_int_equal(enter(f, f->admin, NULL, "default"), ERROR_NONE);
    assert_int_equal(enter(f, f->admin, "", "default"), ERROR_NONE);
    assert_int_equal(enter(f, f->admin, "default-workspace", "default"), ERROR_NONE);
    assert_int_equal(enter(f, f->admin, "blue", "blue"), ERROR_NONE);
    assert_int_equal(enter(f, f->reader, NULL, "blue"), ERROR_NONE);
    assert_int_equal(enter(f, f->reader, "blue", "blue"), ERROR_NONE);
    assert_int_equal(enter(f, f->reader, "default", ""), ERROR_WORKSPACE_NOT_FOUND);
    assert_int_equal(enter(f, f->reader, "default-workspace", ""), ERROR_WORKSPACE_NOT_FOUND);
    for (size_t i = 0; i < ARRAY_LEN(nowhere); i++) {
        assert_int_equal(enter(f, f->admin, nowhere[i], ""), ERROR_WORKSPACE_NOT_FOUND);
        assert_int_equal(enter(f, f->reader, nowhere[i], ""), ERROR_WORKSPACE_NOT_FOUND);
    }
}

/* One that is there and one that is not are told in the same words. */
static void test_no_oracle(void **state)
{
    struct fixture *f = *state;
    struct principal who = fixture_caller(f, f->reader);
    struct error there = {0}, nowhere = {0};
    const char *workspace;
    assert_int_equal(auth_workspace_enter(f->auth, &who, "default", f->arena, &workspace, &there),
                     -1);
    assert_int_equal(auth_workspace_enter(f->auth, &who, "nothing", f->arena, &workspace, &nowhere),
                     -1);
    assert_string_equal(there.message, "there is no workspace \"default\"");
    assert_string_equal(nowhere.message, "there is no workspace \"nothing\"");
}

static void test_create(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name;
        enum error_code code;
    } rows[] = {
        {"red", ERROR_NONE},
        {"red", ERROR_ALREADY_EXISTS},
        {"blue", ERROR_ALREADY_EXISTS},
        {"default", ERROR_ALREADY_EXISTS},
        {"v0", ERROR_INVALID_NAME},
        {"default-workspace", ERROR_INVALID_NAME},
        {"preview", ERROR_INVALID_NAME},
        {"Red", ERROR_INVALID_NAME},
        {"", ERROR_INVALID_NAME},
        {"a/b", ERROR_INVALID_NAME},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        auth_workspace_create(f->auth, rows[i].name, "admin", &err);
        assert_int_equal(err.code, rows[i].code);
    }
    auth_free(f->auth);
    assert_int_equal(auth_new(f->store, false, &f->auth, NULL), 0);
    struct workspace_info info;
    assert_int_equal(auth_workspace_get(f->auth, "red", f->arena, &info, NULL), 0);
    assert_string_equal(info.created_by, "admin");
}

static void test_list(void **state)
{
    struct fixture *f = *state;
    struct principal admin = fixture_caller(f, f->admin), reader = fixture_caller(f, f->reader);
    struct workspace_info *items;
    size_t count;
    auth_workspaces(f->auth, &admin, f->arena, &items, &count);
    assert_int_equal(count, 2);
    assert_string_equal(items[0].name, "blue");
    assert_string_equal(items[1].name, "default");
    auth_workspaces(f->auth, &reader, f->arena, &items, &count);
    assert_int_equal(count, 1);
    assert_string_equal(items[0].name, "blue");
}

static void test_delete(void **state)
{
    struct fixture *f = *state;
    struct principal who;
    struct error err = {0};
    assert_int_equal(auth_workspace_close(f->auth, "default", &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_int_equal(auth_workspace_close(f->auth, "nothing", &err), -1);
    assert_int_equal(err.code, ERROR_WORKSPACE_NOT_FOUND);

    assert_int_equal(auth_workspace_close(f->auth, "blue", &err), 0);
    assert_int_equal(auth_workspace_close(f->auth, "blue", &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_int_equal(enter(f, f->reader, NULL, ""), ERROR_WORKSPACE_NOT_FOUND);
    assert_int_equal(enter(f, f->admin, "blue", ""), ERROR_WORKSPACE_NOT_FOUND);
    auth_workspace_reopen(f->auth, "blue");
    assert_int_equal(enter(f, f->reader, NULL, "blue"), ERROR_NONE);

    assert_int_equal(auth_workspace_close(f->auth, "blue", &err), 0);
    assert_int_equal(auth_workspace_delete(f->auth, "blue", &err), 0);
    assert_int_equal(auth_check(f->auth, f->reader, "unix", SCOPE_READ, &who, &err), -1);
    assert_int_equal(err.code, ERROR_UNAUTHORIZED); /* its keys went with it */
    auth_workspace_reopen(f->auth, "blue");         /* fine when it is gone */
    assert_int_equal(auth_workspace_create(f->auth, "blue", "admin", &err), 0);
    assert_int_equal(auth_check(f->auth, f->reader, "unix", SCOPE_READ, &who, &err), -1);
}

static void test_limit(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    char name[16];
    for (int i = 2; i < WORKSPACES_MAX; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        assert_int_equal(auth_workspace_create(f->auth, name, "admin", &err), 0);
    }
    assert_int_equal(auth_workspace_create(f->auth, "one-more", "admin", &err), -1);
    assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        auth_test(test_door), auth_test(test_no_oracle), auth_test(test_create),
        auth_test(test_list), auth_test(test_delete),    auth_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
