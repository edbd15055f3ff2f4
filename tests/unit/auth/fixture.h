/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A store in memory with two workspaces, and the keys that the tests use. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/auth.h"
#include "auth/keys.h"
#include "auth/token.h"
#include "auth/workspaces.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/timetext.h"

struct fixture {
    struct store *store;
    struct auth *auth;
    struct arena *arena;
    char admin[AUTH_KEY_SIZE];
    char reader[AUTH_KEY_SIZE]; /* of the workspace "blue" */
};

#define PEER "192.0.2.1:4711"

static inline void fixture_key(struct store *store, const char *key, const char *name,
                               const char *workspace, unsigned scopes)
{
    struct store_key row = {.scopes = scopes, .created_ms = 1};
    auth_hash_key(key, row.hash);
    snprintf(row.id, sizeof(row.id), "%s", name);
    snprintf(row.name, sizeof(row.name), "%s", name);
    snprintf(row.workspace, sizeof(row.workspace), "%s", workspace);
    assert_int_equal(store_put_key(store, &row, NULL), 0);
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct error err;
    char hash[65];
    const struct store_workspace blue = {.name = "blue", .created_ms = 7, .created_by = "admin"};
    assert_int_equal(store_open(NULL, ":memory:", false, &f->store, &err), 0);
    assert_int_equal(store_add_workspace(f->store, &blue, &err), 0);
    auth_make_key(f->admin);
    auth_make_key(f->reader);
    auth_hash_key(f->admin, hash);
    assert_int_equal(auth_store_first_key(f->store, hash, &err), 0);
    fixture_key(f->store, f->reader, "reader", "blue", SCOPE_READ);
    assert_int_equal(auth_new(f->store, false, &f->auth, &err), 0);
    f->arena = arena_new();
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    arena_free(f->arena);
    auth_free(f->auth);
    store_close(f->store);
    free(f);
    return 0;
}

static inline struct principal fixture_caller(struct fixture *f, const char *credential)
{
    struct principal who;
    struct error err = {0};
    if (auth_check(f->auth, credential, "unix", SCOPE_READ, &who, &err) < 0)
        fail_msg("%s", err.message);
    return who;
}

#define auth_test(function)                                                                        \
    cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
