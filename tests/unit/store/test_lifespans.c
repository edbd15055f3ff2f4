/* SPDX-License-Identifier: Apache-2.0 */

#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fixture.h"

struct seen {
    size_t count;
    char id[16];
    char on_expire[16];
    struct store_lifespan row; /* only its numbers are valid */
};

static int see(void *ctx, const char *id, const struct store_lifespan *row, struct error *err)
{
    struct seen *seen = ctx;
    seen->count++;
    seen->row = *row;
    snprintf(seen->id, sizeof(seen->id), "%s", id);
    snprintf(seen->on_expire, sizeof(seen->on_expire), "%s",
             row->on_expire != NULL ? row->on_expire : "-");
    return 0;
}

static struct seen look(struct fixture *f)
{
    struct seen seen = {0};
    struct error err = {0};
    fixture_reopen(f);
    assert_int_equal(store_load_lifespans(f->store, see, &seen, &err), 0);
    return seen;
}

static void test_life(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_sandbox one = make_sandbox("one", "box"), two = make_sandbox("two", "other");
    struct store_lifespan span = {1, 2, 3, 4000, NULL, 5000, 6000, true};
    one.lifespan = &span;
    assert_int_equal(store_put_sandbox(f->store, &one, NULL, &err), 0);
    assert_int_equal(store_put_sandbox(f->store, &two, NULL, &err), 0);
    struct seen seen = look(f);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.id, "one");
    assert_string_equal(seen.on_expire, "-");
    assert_int_equal(seen.row.ttl_s, 1);
    assert_int_equal(seen.row.idle_s, 2);
    assert_int_equal(seen.row.max_age_s, 3);
    assert_int_equal(seen.row.expires_ms, 4000);
    assert_int_equal(seen.row.ttl_from_ms, 5000);
    assert_int_equal(seen.row.active_ms, 6000);
    assert_true(seen.row.wake);

    span.on_expire = "stop";
    span.ttl_s = 10;
    assert_int_equal(store_put_sandbox(f->store, &one, NULL, &err), 0);
    one.lifespan = NULL; /* what is there stays */
    assert_int_equal(store_put_sandbox(f->store, &one, NULL, &err), 0);
    assert_int_equal(store_use_sandbox(f->store, "one", 7000, &err), 0);
    assert_int_equal(store_use_sandbox(f->store, "two", 8000, &err), 0);
    seen = look(f);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.on_expire, "stop");
    assert_int_equal(seen.row.ttl_s, 10);
    assert_int_equal(seen.row.active_ms, 7000);

    assert_int_equal(store_delete_sandbox(f->store, "one", &err), 0);
    assert_int_equal(look(f).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_life, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
