/* SPDX-License-Identifier: Apache-2.0 */

/* The store beside a loop: calls of coroutines run on its thread, in order. */

#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "loop/co.h"

enum { COROUTINES = 20, PUTS = 10 };

static struct loaded loaded;

struct shared {
    struct loop *loop;
    struct store *store;
    int running;
    int failed;
    uint64_t revision;
    bool waited; /* the loop went on while a call was under way */
};

struct job {
    struct shared *shared;
    int number;
};

static void put_some(void *arg)
{
    struct job *job = arg;
    struct shared *s = job->shared;
    char name[32];
    snprintf(name, sizeof(name), "box-%d", job->number);
    s->running++;
    for (int i = 0; i < PUTS; i++) {
        struct store_sandbox row = make_sandbox(name, name);
        struct store_event event = make_event(++s->revision);
        struct error err = {0};
        if (store_put_sandbox(s->store, &row, &event, &err) < 0)
            s->failed++;
        if (s->running > 1)
            s->waited = true;
    }
    /* An error comes back too. */
    struct store_sandbox row = make_sandbox("another", name);
    struct error err = {0};
    if (store_put_sandbox(s->store, &row, NULL, &err) == 0 || err.code != ERROR_ALREADY_EXISTS)
        s->failed++;
    if (--s->running == 0)
        loop_stop(s->loop);
}

static void test_coroutines(void **state)
{
    struct fixture *f = *state;
    struct shared s = {0};
    struct job jobs[COROUTINES];
    struct error err = {0};
    s.loop = loop_new(&err);
    assert_non_null(s.loop);
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(store_open(s.loop, f->path, false, &s.store, &err), 0);
    for (int i = 0; i < COROUTINES; i++) {
        jobs[i] = (struct job){&s, i};
        assert_int_equal(co_spawn(s.loop, put_some, &jobs[i], NULL, &err), 0);
    }
    /* A direct call, with theirs under way. */
    struct store_sandbox row = make_sandbox("direct", "direct");
    assert_int_equal(store_put_sandbox(s.store, &row, NULL, &err), 0);
    assert_int_equal(s.running, COROUTINES);
    assert_int_equal(loop_run(s.loop, &err), 0);
    assert_int_equal(s.failed, 0);
    assert_true(s.waited);
    load(s.store, &loaded);
    assert_int_equal(loaded.sandbox_count, COROUTINES + 1);
    assert_int_equal(loaded.event_count, COROUTINES * PUTS);
    store_close(s.store);
    loop_free(s.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_coroutines, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
