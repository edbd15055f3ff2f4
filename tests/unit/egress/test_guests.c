/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of guests, buckets, and what a change of policy closes. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "egress/guests.h"
#include "loop/task.h"

#define STRV(text) ((struct slice){text, sizeof(text)})
#define LISTED     STRV("mode=allowlist\0allow=*.example.com\0allow=8.8.8.8:443")

static int set(struct guests *guests, const char *id, const char *address, struct slice policy)
{
    const struct egress_set message = {.id = id, .address = address, .policy = policy};
    struct error err;
    return guests_set(guests, &message, &err);
}

static struct guest *at(struct guests *guests, const char *text)
{
    struct net_address address;
    struct error err;
    assert_int_equal(net_address_parse(slice_of(text), &address, &err), 0);
    return guests_at(guests, &address);
}

static void test_tables(void **state)
{
    struct guests guests = {0};
    assert_int_equal(set(&guests, "one", "10.201.0.2", LISTED), 0);
    assert_int_equal(set(&guests, "two", "10.201.0.3", LISTED), 0);
    assert_ptr_equal(at(&guests, "10.201.0.2"), guests_find(&guests, "one"));
    assert_null(at(&guests, "10.201.0.4"));
    assert_null(guests_find(&guests, "three"));
    /* It moves; then somebody else comes to have its address. */
    assert_int_equal(set(&guests, "one", "10.201.0.4", LISTED), 0);
    assert_null(at(&guests, "10.201.0.2"));
    assert_ptr_equal(at(&guests, "10.201.0.4"), guests_find(&guests, "one"));
    assert_int_equal(set(&guests, "three", "10.201.0.4", LISTED), 0);
    assert_null(guests_find(&guests, "one"));
    assert_ptr_equal(at(&guests, "10.201.0.4"), guests_find(&guests, "three"));
    guests_keep(&guests, STRV("three\0four"));
    assert_null(guests_find(&guests, "two"));
    assert_non_null(guests_find(&guests, "three"));
    guests_release(&guests);
    assert_null(guests.ids);
    assert_null(guests.addresses);
}

static void test_bad(void **state)
{
    struct guests guests = {0};
    assert_int_equal(set(&guests, "", "10.201.0.2", LISTED), -1);
    assert_int_equal(set(&guests, "one", "10.201.0", LISTED), -1);
    assert_int_equal(set(&guests, "one", "::1", LISTED), -1);
    assert_int_equal(set(&guests, "one", "10.201.0.2", STRV("mode=everything")), -1);
    assert_null(guests.ids);
}

static void test_bucket(void **state)
{
    struct bucket bucket = {0};
    for (int i = 0; i < 5; i++)
        assert_true(bucket_take(&bucket, 1000, 10, 5));
    assert_false(bucket_take(&bucket, 1000, 10, 5));
    assert_false(bucket_take(&bucket, 1099, 10, 5));
    assert_true(bucket_take(&bucket, 1100, 10, 5));
    assert_false(bucket_take(&bucket, 1100, 10, 5));
    for (int i = 0; i < 5; i++)
        assert_true(bucket_take(&bucket, 100000, 10, 5));
    assert_false(bucket_take(&bucket, 100000, 10, 5));
}

static void test_shares(void **state)
{
    struct guests guests = {0};
    assert_int_equal(set(&guests, "one", "10.201.0.2", LISTED), 0);
    assert_int_equal(set(&guests, "two", "10.201.0.3", LISTED), 0);
    struct guest *one = guests_find(&guests, "one");
    one->flow_count = EGRESS_GUEST_FLOWS_MAX - 1;
    assert_true(guest_may_connect(&guests, one, 1000));
    one->flow_count = EGRESS_GUEST_FLOWS_MAX;
    assert_false(guest_may_connect(&guests, one, 1000));
    one->flow_count = 40;
    guests.flow_count = 49;
    assert_true(guest_may_connect(&guests, one, 100));
    guests.flow_count = 50; /* half of it: 8 and a third of the other half are its share */
    assert_false(guest_may_connect(&guests, one, 100));
    assert_true(guest_may_connect(&guests, guests_find(&guests, "two"), 100));
    guests.flow_count = 100;
    assert_false(guest_may_connect(&guests, guests_find(&guests, "two"), 100));
    one->flow_count = guests.flow_count = 0;
    guests_release(&guests);
}

/* --- connections --- */

struct connection {
    struct loop *loop;
    struct guests *guests;
    struct flow flow;
    struct task task;
    bool ended;
};

static void connection_main(void *arg)
{
    struct connection *c = arg;
    struct error err;
    struct guest *guest = guests_find(c->guests, "one");
    flow_join(c->guests, &c->flow, guest, c->loop);
    c->flow.judged = true;
    co_sleep(c->loop, 60 * 1000, &err);
    c->ended = true;
    flow_leave(c->guests, &c->flow);
}

static void start(struct connection *c, struct loop *loop, struct guests *guests, const char *name,
                  const char *address)
{
    struct error err;
    *c = (struct connection){.loop = loop, .guests = guests, .flow = {.port = 443}};
    if (name != NULL)
        memcpy(c->flow.name, name, strlen(name) + 1);
    assert_int_equal(net_address_parse(slice_of(address), &c->flow.address, &err), 0);
    assert_int_equal(task_start(loop, &c->task, connection_main, c, &err), 0);
}

static void change_policies(void *arg)
{
    struct loop *loop = arg;
    struct guests guests = {0};
    struct connection named, numbered;
    assert_int_equal(set(&guests, "one", "10.201.0.2", LISTED), 0);
    start(&named, loop, &guests, "www.example.com", "9.9.9.9");
    start(&numbered, loop, &guests, NULL, "8.8.8.8");
    assert_int_equal(guests.flow_count, 2);
    /* the same policy again closes nothing */
    assert_int_equal(set(&guests, "one", "10.201.0.2", LISTED), 0);
    co_sleep(loop, 1, NULL);
    assert_false(named.ended || numbered.ended);
    assert_int_equal(set(&guests, "one", "10.201.0.2", STRV("mode=allowlist\0allow=8.8.0.0/16")),
                     0);
    task_join(&named.task);
    assert_true(named.ended);
    assert_int_equal(named.flow.closed, NET_REFUSED_CHANGED);
    assert_false(numbered.ended);
    guests_drop(&guests, guests_find(&guests, "one"));
    task_join(&numbered.task);
    assert_true(numbered.ended);
    assert_int_equal(guests.flow_count, 0);
    guests_release(&guests);
    loop_stop(loop);
}

static void test_changes(void **state)
{
    struct error err;
    struct loop *loop = loop_new(&err);
    assert_non_null(loop);
    assert_int_equal(co_spawn(loop, change_policies, loop, NULL, &err), 0);
    assert_int_equal(loop_run(loop, &err), 0);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),  cmocka_unit_test(test_bad),
        cmocka_unit_test(test_bucket),  cmocka_unit_test(test_shares),
        cmocka_unit_test(test_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
