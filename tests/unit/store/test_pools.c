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
    size_t pools, spares;
    int64_t size, ttl_s, at_once, created_ms, updated_ms;
    char names[64]; /* in order, each with a space behind it */
    char image[32], level[32], code[32];
    char ids[64];
};

static void append(char *to, size_t size, const char *text)
{
    size_t len = strlen(to);
    snprintf(to + len, size - len, "%s ", text);
}

static int see_pool(void *ctx, const struct store_pool *row, struct error *err)
{
    struct seen *seen = ctx;
    seen->pools++;
    seen->size = row->size;
    seen->ttl_s = row->ttl_s;
    seen->at_once = row->at_once;
    seen->created_ms = row->created_ms;
    seen->updated_ms = row->updated_ms;
    append(seen->names, sizeof(seen->names), row->name);
    snprintf(seen->image, sizeof(seen->image), "%s", row->image);
    snprintf(seen->level, sizeof(seen->level), "%s",
             row->trust_level == NULL ? "none" : row->trust_level);
    snprintf(seen->code, sizeof(seen->code), "%s", row->code);
    return 0;
}

static int see_spare(void *ctx, const char *id, struct error *err)
{
    struct seen *seen = ctx;
    seen->spares++;
    append(seen->ids, sizeof(seen->ids), id);
    return 0;
}

static struct seen look(struct fixture *f)
{
    struct seen seen = {0};
    struct error err = {0};
    fixture_reopen(f);
    assert_int_equal(store_load_pools(f->store, see_pool, &seen, &err), 0);
    assert_int_equal(store_load_spares(f->store, see_spare, &seen, &err), 0);
    return seen;
}

static struct store_pool make_pool(const char *name)
{
    return (struct store_pool){.name = name,
                               .image = "host",
                               .cpu = "1",
                               .memory = "1Gi",
                               .disk = "1Gi",
                               .trust_level = "untrusted",
                               .security = "allow_shell=0\n",
                               .size = 3,
                               .ttl_s = 60,
                               .at_once = 1,
                               .created_ms = 10,
                               .updated_ms = 10,
                               .created_by = "me"};
}

static void test_life_of_a_pool(void **state)
{
    struct fixture *f = *state;
    struct store_pool b = make_pool("b"), a = make_pool("a");
    assert_int_equal(store_put_pool(f->store, &b, NULL), 0);
    assert_int_equal(store_put_pool(f->store, &a, NULL), 0);
    struct seen seen = look(f);
    assert_string_equal(seen.names, "a b ");
    assert_string_equal(seen.image, "host");
    assert_string_equal(seen.level, "untrusted");
    assert_string_equal(seen.code, "");

    b.size = 7;
    b.code = "python bash";
    b.ttl_s = 90;
    b.at_once = 2;
    b.updated_ms = 20;
    b.image = "other"; /* it is for what it was made for */
    assert_int_equal(store_put_pool(f->store, &b, NULL), 0);
    assert_int_equal(store_delete_pool(f->store, "a", NULL), 0);
    assert_int_equal(store_delete_pool(f->store, "nowhere", NULL), 0);
    seen = look(f);
    assert_string_equal(seen.names, "b ");
    assert_string_equal(seen.image, "host");
    assert_int_equal(seen.size, 7);
    assert_int_equal(seen.ttl_s, 90);
    assert_int_equal(seen.at_once, 2);
    assert_int_equal(seen.created_ms, 10);
    assert_int_equal(seen.updated_ms, 20);
    assert_string_equal(seen.code, "python bash");
}

static void put(struct fixture *f, const char *id, const char *status)
{
    struct store_sandbox row = make_sandbox(id, id);
    row.status = status;
    assert_int_equal(store_put_sandbox(f->store, &row, NULL, NULL), 0);
}

/* It is one until the sandbox that came of it runs: until then a crash goes on with the claim. */
static void test_spare_until_it_runs(void **state)
{
    struct fixture *f = *state;
    static const char *const ids[] = {"one", "two", "three"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        assert_int_equal(store_add_spare(f->store, ids[i], "pool", NULL), 0);
    assert_int_equal(store_add_spare(f->store, "one", "pool", NULL), -1);
    put(f, "one", "creating");
    assert_int_equal(look(f).spares, 3);
    put(f, "one", "stopping");
    assert_int_equal(look(f).spares, 3);
    put(f, "one", "running");
    assert_string_equal(look(f).ids, "three two ");

    put(f, "two", "creating");
    assert_int_equal(store_clear_spares(f->store, NULL), 0); /* what nobody has taken */
    assert_string_equal(look(f).ids, "two ");
    assert_int_equal(store_delete_sandbox(f->store, "two", NULL), 0);
    assert_int_equal(look(f).spares, 0);
}

static void test_spare_that_goes(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(store_add_spare(f->store, "one", "pool", NULL), 0);
    assert_int_equal(store_add_spare(f->store, "two", "pool", NULL), 0);
    assert_int_equal(store_delete_spare(f->store, "one", NULL), 0);
    assert_int_equal(store_delete_spare(f->store, "one", NULL), 0);
    assert_int_equal(store_delete_sandbox(f->store, "two", NULL), 0); /* never recorded as one */
    assert_int_equal(look(f).spares, 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_life_of_a_pool),
        TEST(test_spare_until_it_runs),
        TEST(test_spare_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
