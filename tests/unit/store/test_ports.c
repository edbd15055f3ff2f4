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
    char text[256]; /* all of them, in order */
};

static int see(void *ctx, const struct store_port *row, struct error *err)
{
    struct seen *seen = ctx;
    size_t len = strlen(seen->text);
    seen->count++;
    snprintf(seen->text + len, sizeof(seen->text) - len, "%s:%u %s %s %u %s %s %lld %s\n",
             row->sandbox_id, row->port, row->protocol, row->access, row->host_port,
             row->command != NULL ? row->command : "-", row->generation, (long long)row->updated_ms,
             row->created_by);
    return 0;
}

static struct seen look(struct fixture *f)
{
    struct seen seen = {0};
    struct error err = {0};
    fixture_reopen(f);
    assert_int_equal(store_load_ports(f->store, see, &seen, &err), 0);
    return seen;
}

static void test_life(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    const struct store_sandbox one = make_sandbox("one", "box"), two = make_sandbox("two", "b");
    assert_int_equal(store_put_sandbox(f->store, &one, NULL, &err), 0);
    assert_int_equal(store_put_sandbox(f->store, &two, NULL, &err), 0);
    struct store_port port = {.sandbox_id = "one",
                              .port = 80,
                              .protocol = "http",
                              .access = "private",
                              .host_port = 30000,
                              .generation = "g1",
                              .created_ms = 1,
                              .updated_ms = 1,
                              .created_by = "me"};
    assert_int_equal(store_put_port(f->store, &port, &err), 0);
    port.port = 81; /* two that have none do not meet */
    port.host_port = 0;
    port.created_ms = 2;
    assert_int_equal(store_put_port(f->store, &port, &err), 0);
    port.port = 82;
    port.created_ms = 3;
    assert_int_equal(store_put_port(f->store, &port, &err), 0);
    assert_string_equal(look(f).text, "one:80 http private 30000 - g1 1 me\n"
                                      "one:81 http private 0 - g1 1 me\n"
                                      "one:82 http private 0 - g1 1 me\n");

    port = (struct store_port){.sandbox_id = "one", /* … and what cannot change does not */
                               .port = 80,
                               .protocol = "tcp",
                               .access = "public",
                               .host_port = 31000,
                               .command = "serve",
                               .generation = "g2",
                               .created_ms = 9,
                               .updated_ms = 9,
                               .created_by = "you"};
    assert_int_equal(store_put_port(f->store, &port, &err), 0);
    assert_int_equal(store_delete_port(f->store, "one", 81, &err), 0);
    assert_int_equal(store_delete_port(f->store, "one", 81, &err), 0);
    assert_int_equal(store_delete_port(f->store, "one", 82, &err), 0);
    assert_string_equal(look(f).text, "one:80 http public 30000 serve g2 9 me\n");

    port = (struct store_port){.sandbox_id = "two",
                               .port = 80,
                               .protocol = "http",
                               .access = "public",
                               .host_port = 30000,
                               .generation = "g",
                               .created_by = "me"};
    assert_int_equal(store_put_port(f->store, &port, &err), -1);
    assert_int_equal(err.code, ERROR_PORT_IN_USE);
    port.sandbox_id = "none";
    port.host_port = 0;
    assert_int_equal(store_put_port(f->store, &port, &err), -1);
    assert_int_equal(err.code, ERROR_SANDBOX_NOT_FOUND);

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
