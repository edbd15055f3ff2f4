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
    size_t monitors, ports, told;
    uint64_t pid, started_ms;
    char callback[64];
    unsigned shape, port;
};

static int see_monitor(void *ctx, const struct store_monitor *row, struct error *err)
{
    struct seen *seen = ctx;
    seen->monitors++;
    seen->pid = row->pid;
    seen->started_ms = row->started_ms;
    seen->shape = row->shape;
    snprintf(seen->callback, sizeof(seen->callback), "%s", row->callback);
    return 0;
}

static int see_port(void *ctx, const char *sandbox_id, uint64_t pid, unsigned port, bool told,
                    struct error *err)
{
    struct seen *seen = ctx;
    assert_string_equal(sandbox_id, "one");
    seen->ports++;
    seen->told += told;
    seen->port = port;
    return 0;
}

static struct seen look(struct fixture *f)
{
    struct seen seen = {0};
    struct error err = {0};
    fixture_reopen(f);
    const struct store_load_monitors load = {see_monitor, see_port, &seen};
    assert_int_equal(store_load_monitors(f->store, &load, &err), 0);
    return seen;
}

static void test_life(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_sandbox sandbox = make_sandbox("one", "box");
    struct store_monitor row = {"one", 7, 1234567890123, "https://example.com/a", 1};
    assert_int_equal(store_put_sandbox(f->store, &sandbox, NULL, &err), 0);
    assert_int_equal(store_put_monitor(f->store, &row, &err), 0);
    assert_int_equal(store_put_monitor_port(f->store, "one", 7, 80, false, &err), 0);
    assert_int_equal(store_put_monitor_port(f->store, "one", 7, 81, false, &err), 0);
    assert_int_equal(store_put_monitor_port(f->store, "one", 7, 81, true, &err), 0);
    struct seen seen = look(f);
    assert_int_equal(seen.monitors, 1);
    assert_int_equal(seen.pid, 7);
    assert_int_equal(seen.started_ms, 1234567890123);
    assert_int_equal(seen.shape, 1);
    assert_string_equal(seen.callback, "https://example.com/a");
    assert_int_equal(seen.ports, 2);
    assert_int_equal(seen.told, 1);

    assert_int_equal(store_delete_monitor_port(f->store, "one", 7, 81, &err), 0);
    assert_int_equal(look(f).port, 80);
    /* Another callback starts from nothing. */
    row.callback = "https://example.com/b";
    assert_int_equal(store_put_monitor(f->store, &row, &err), 0);
    seen = look(f);
    assert_int_equal(seen.monitors, 1);
    assert_int_equal(seen.ports, 0);
    assert_string_equal(seen.callback, "https://example.com/b");

    assert_int_equal(store_delete_monitor(f->store, "one", 7, &err), 0);
    assert_int_equal(look(f).monitors, 0);
    /* Late news of one that was stopped are no error. */
    assert_int_equal(store_put_monitor_port(f->store, "one", 7, 80, true, &err), 0);
    assert_int_equal(look(f).ports, 0);
}

static void test_goes_with_its_sandbox(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct store_sandbox sandbox = make_sandbox("one", "box");
    struct store_monitor row = {"one", 7, 1, "https://example.com/", 0};
    assert_int_equal(store_put_monitor(f->store, &row, &err), -1);
    assert_int_equal(err.code, ERROR_SANDBOX_NOT_FOUND);
    assert_int_equal(store_put_sandbox(f->store, &sandbox, NULL, &err), 0);
    assert_int_equal(store_put_monitor(f->store, &row, &err), 0);
    assert_int_equal(store_put_monitor_port(f->store, "one", 7, 80, false, &err), 0);
    /* A sandbox that is written again keeps them. */
    assert_int_equal(store_put_sandbox(f->store, &sandbox, NULL, &err), 0);
    assert_int_equal(look(f).ports, 1);
    assert_int_equal(store_delete_sandbox(f->store, "one", &err), 0);
    struct seen seen = look(f);
    assert_int_equal(seen.monitors + seen.ports, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_life, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_goes_with_its_sandbox, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
