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

struct seen {
    size_t previews, tokens;
    char id[16], name[16], spec[32], token[16], token_of[16];
    unsigned port;
    bool is_public;
    int64_t expires_ms;
    char headers[64];
    size_t headers_len;
};

static int see_preview(void *ctx, const struct store_preview *row, struct error *err)
{
    struct seen *seen = ctx;
    seen->previews++;
    snprintf(seen->id, sizeof(seen->id), "%s", row->id);
    snprintf(seen->name, sizeof(seen->name), "%s", row->name);
    snprintf(seen->spec, sizeof(seen->spec), "%s", row->spec);
    seen->port = row->port;
    seen->is_public = row->is_public;
    seen->expires_ms = row->expires_ms;
    seen->headers_len = row->request_headers.len;
    assert_true(row->request_headers.len <= sizeof(seen->headers));
    if (row->request_headers.len > 0)
        memcpy(seen->headers, row->request_headers.data, row->request_headers.len);
    return 0;
}

static int see_token(void *ctx, const char *preview_id, const struct store_preview_token *row,
                     struct error *err)
{
    struct seen *seen = ctx;
    seen->tokens++;
    snprintf(seen->token, sizeof(seen->token), "%s", row->token);
    snprintf(seen->token_of, sizeof(seen->token_of), "%s", preview_id);
    return 0;
}

static struct seen look(struct store *store)
{
    struct seen seen = {0};
    struct error err = {0};
    const struct store_load_previews load = {see_preview, see_token, &seen};
    if (store_load_previews(store, &load, &err) < 0)
        fail_msg("%s", err.message);
    return seen;
}

static void put_sandbox(struct store *store)
{
    struct store_sandbox row = make_sandbox("idbox", "box");
    struct error err = {0};
    assert_int_equal(store_put_sandbox(store, &row, NULL, &err), 0);
}

static struct store_preview make_preview(const char *id, const char *name)
{
    return (struct store_preview){.id = id,
                                  .sandbox_id = "idbox",
                                  .name = name,
                                  .port = 3000,
                                  .is_public = true,
                                  .expires_ms = 77,
                                  .created_ms = 1,
                                  .updated_ms = 2,
                                  .created_by = "me",
                                  .request_headers = {"A: 1\0B: 2", 10},
                                  .spec = "{}"};
}

static void test_come_back(void **state)
{
    struct fixture *f = *state;
    struct store_preview row = make_preview("p1", "web");
    const struct store_preview_token token = {"t", "secret", 0, 5};
    struct error err = {0};
    put_sandbox(f->store);
    assert_int_equal(store_put_preview(f->store, &row, &err), 0);
    assert_int_equal(store_put_preview_token(f->store, "p1", &token, &err), 0);
    fixture_reopen(f);
    struct seen seen = look(f->store);
    assert_int_equal(seen.previews, 1);
    assert_int_equal(seen.tokens, 1);
    assert_string_equal(seen.name, "web");
    assert_string_equal(seen.token, "secret");
    assert_string_equal(seen.token_of, "p1");
    assert_int_equal(seen.port, 3000);
    assert_true(seen.is_public);
    assert_int_equal(seen.expires_ms, 77);
    assert_int_equal(seen.headers_len, 10);
    assert_memory_equal(seen.headers, "A: 1\0B: 2", 10);
}

static void test_change(void **state)
{
    struct fixture *f = *state;
    struct store_preview row = make_preview("p1", "web");
    const struct store_preview_token token = {"t", "secret", 0, 5};
    struct error err = {0};
    put_sandbox(f->store);
    assert_int_equal(store_put_preview(f->store, &row, &err), 0);
    row.port = 4000;
    row.is_public = false;
    row.spec = "{\"a\":1}";
    assert_int_equal(store_put_preview_token(f->store, "p1", &token, &err), 0);
    assert_int_equal(store_put_preview(f->store, &row, &err), 0);
    struct seen seen = look(f->store);
    assert_int_equal(seen.tokens, 1); /* they stay */
    assert_int_equal(seen.previews, 1);
    assert_int_equal(seen.port, 4000);
    assert_false(seen.is_public);
    assert_string_equal(seen.spec, "{\"a\":1}");
    row.drops_tokens = true;
    assert_int_equal(store_put_preview(f->store, &row, &err), 0);
    assert_int_equal(look(f->store).tokens, 0);
}

static void test_name_is_taken(void **state)
{
    struct fixture *f = *state;
    struct store_preview one = make_preview("p1", "web"), two = make_preview("p2", "web");
    const struct store_preview_token token = {"t", "secret", 0, 5};
    struct error err = {0};
    put_sandbox(f->store);
    assert_int_equal(store_put_preview(f->store, &one, &err), 0);
    assert_int_equal(store_put_preview(f->store, &two, &err), -1);
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);
    assert_int_equal(store_put_preview_token(f->store, "p1", &token, &err), 0);
    assert_int_equal(store_put_preview_token(f->store, "p1", &token, &err), -1);
    assert_int_equal(err.code, ERROR_ALREADY_EXISTS);
}

static void test_nothing_to_belong_to(void **state)
{
    struct fixture *f = *state;
    struct store_preview row = make_preview("p1", "web");
    const struct store_preview_token token = {"t", "secret", 0, 5};
    struct error err = {0};
    assert_int_equal(store_put_preview(f->store, &row, &err), -1);
    assert_int_equal(err.code, ERROR_SANDBOX_NOT_FOUND);
    assert_int_equal(store_put_preview_token(f->store, "p1", &token, &err), -1);
    assert_int_equal(err.code, ERROR_PREVIEW_NOT_FOUND);
}

static void test_go_with_their_sandbox(void **state)
{
    struct fixture *f = *state;
    struct store_preview row = make_preview("p1", "web");
    const struct store_preview_token token = {"t", "secret", 0, 5};
    struct error err = {0};
    put_sandbox(f->store);
    assert_int_equal(store_put_preview(f->store, &row, &err), 0);
    assert_int_equal(store_put_preview_token(f->store, "p1", &token, &err), 0);
    put_sandbox(f->store); /* a change of it leaves them alone */
    assert_int_equal(look(f->store).tokens, 1);
    assert_int_equal(store_delete_sandbox(f->store, "idbox", &err), 0);
    assert_int_equal(look(f->store).previews, 0);
    put_sandbox(f->store);
    assert_int_equal(store_put_preview(f->store, &row, &err), 0);
    assert_int_equal(look(f->store).tokens, 0);
}

static void test_deleting(void **state)
{
    struct fixture *f = *state;
    struct store_preview row = make_preview("p1", "web");
    const struct store_preview_token one = {"one", "s1", 0, 5}, two = {"two", "s2", 0, 6};
    struct error err = {0};
    put_sandbox(f->store);
    assert_int_equal(store_put_preview(f->store, &row, &err), 0);
    assert_int_equal(store_put_preview_token(f->store, "p1", &one, &err), 0);
    assert_int_equal(store_put_preview_token(f->store, "p1", &two, &err), 0);
    assert_int_equal(store_delete_preview_token(f->store, "p1", "one", &err), 0);
    assert_int_equal(look(f->store).tokens, 1);
    assert_string_equal(look(f->store).token, "s2");
    assert_int_equal(store_delete_preview(f->store, "p1", &err), 0);
    assert_int_equal(look(f->store).previews, 0);
}

static void test_ended_tokens_make_room(void **state)
{
    struct fixture *f = *state;
    struct store_preview row = make_preview("p1", "web");
    const struct store_preview_token old = {"t", "old", 10, 5}, young = {"t", "young", 0, 11};
    struct error err = {0};
    put_sandbox(f->store);
    assert_int_equal(store_put_preview(f->store, &row, &err), 0);
    assert_int_equal(store_put_preview_token(f->store, "p1", &old, &err), 0);
    assert_int_equal(store_put_preview_token(f->store, "p1", &young, &err), 0);
    assert_int_equal(look(f->store).tokens, 1);
    assert_string_equal(look(f->store).token, "young");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_come_back),
        TEST(test_change),
        TEST(test_name_is_taken),
        TEST(test_nothing_to_belong_to),
        TEST(test_go_with_their_sandbox),
        TEST(test_deleting),
        TEST(test_ended_tokens_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
