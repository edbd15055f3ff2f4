/* SPDX-License-Identifier: Apache-2.0 */

/* Coroutines: starting, waiting, cancelling, conditions, many at once; and worker threads. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/co.h"
#include "loop/work.h"

struct fixture {
    struct loop *loop;
    char trace[256];
    struct co_cond cond;
    struct co *co;
    struct co *second;
    struct workers *workers;
    int fds[2];
    int count;
};

static int setup(void **state)
{
    struct error err;
    struct fixture *f = calloc(1, sizeof(*f));
    f->loop = loop_new(&err);
    *state = f;
    return f->loop == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->fds) != 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    workers_free(f->workers);
    loop_free(f->loop);
    close(f->fds[0]);
    close(f->fds[1]);
    free(f);
    return 0;
}

static void note(struct fixture *f, const char *what)
{
    size_t used = strlen(f->trace);
    snprintf(f->trace + used, sizeof(f->trace) - used, "%s ", what);
}

static void spawn(struct fixture *f, void (*fn)(void *), struct co **ret_co)
{
    struct error err;
    assert_int_equal(co_spawn(f->loop, fn, f, ret_co, &err), 0);
}

static void run(struct fixture *f)
{
    struct error err;
    assert_int_equal(loop_run(f->loop, &err), 0);
}

/* --- starting and nesting --- */

static void inner(void *arg)
{
    struct fixture *f = arg;
    note(f, "inner");
    assert_int_equal(co_sleep(f->loop, 1, NULL), 0);
    note(f, "inner-end");
    loop_stop(f->loop);
}

static void outer(void *arg)
{
    struct fixture *f = arg;
    struct co *self = co_self(f->loop);
    note(f, "outer");
    spawn(f, inner, NULL);
    assert_ptr_equal(co_self(f->loop), self);
    note(f, "outer-end");
}

static void spawn_runs_at_once_and_nests(void **state)
{
    struct fixture *f = *state;
    assert_null(co_self(f->loop));
    spawn(f, outer, NULL);
    assert_null(co_self(f->loop));
    assert_string_equal(f->trace, "outer inner outer-end ");
    run(f);
    assert_string_equal(f->trace, "outer inner outer-end inner-end ");
}

static void waiting_outside_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct error err;
    assert_int_equal(co_sleep(f->loop, 0, &err), -1);
    assert_int_equal(err.code, ERROR_INTERNAL);
}

/* --- descriptors, time-outs, cancelling --- */

static void read_slowly(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    assert_int_equal(co_wait_fd(f->loop, f->fds[0], EPOLLIN, 2, &err), -1);
    assert_int_equal(err.code, ERROR_TIMEOUT);
    assert_int_equal(write(f->fds[1], "x", 1), 1);
    assert_int_equal(co_wait_fd(f->loop, f->fds[0], EPOLLIN, 1000, &err), 0);
    note(f, "read");
    loop_stop(f->loop);
}

static void fd_wait_and_timeout(void **state)
{
    struct fixture *f = *state;
    spawn(f, read_slowly, NULL);
    run(f);
    assert_string_equal(f->trace, "read ");
}

static void wait_readable(void *arg)
{
    struct fixture *f = arg;
    assert_int_equal(co_wait_fd(f->loop, f->fds[0], EPOLLIN, -1, NULL), 0);
    note(f, "readable");
    loop_stop(f->loop);
}

static void wait_writable(void *arg)
{
    struct fixture *f = arg;
    assert_int_equal(co_wait_fd(f->loop, f->fds[0], EPOLLOUT, -1, NULL), 0);
    note(f, "writable");
    assert_int_equal(write(f->fds[1], "x", 1), 1);
}

static void two_wait_on_one_fd(void **state)
{
    struct fixture *f = *state;
    spawn(f, wait_readable, NULL);
    spawn(f, wait_writable, NULL);
    run(f);
    assert_string_equal(f->trace, "writable readable ");
}

static void cleanup_note(struct fixture **f)
{
    note(*f, "cleanup");
}

static void sleeper(void *arg)
{
    _cleanup_(cleanup_note) struct fixture *f = arg;
    struct error err;
    assert_int_equal(co_wait_fd(f->loop, f->fds[0], EPOLLIN, -1, &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    /* and every later wait, at once */
    assert_int_equal(co_sleep(f->loop, 1000 * 1000, &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    assert_int_equal(co_cond_wait(f->loop, &f->cond, -1, &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    assert_null(f->cond.first);
    loop_stop(f->loop);
}

static void cancel_runs_cleanups(void **state)
{
    struct fixture *f = *state;
    spawn(f, sleeper, &f->co);
    co_cancel(f->co);
    co_cancel(f->co);
    assert_string_equal(f->trace, ""); /* not before the loop's turn */
    run(f);
    assert_string_equal(f->trace, "cleanup ");
}

static void cancels_itself(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    co_cancel(co_self(f->loop));
    assert_int_equal(co_sleep(f->loop, 0, &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    note(f, "done");
}

static void cancel_the_running_one(void **state)
{
    struct fixture *f = *state;
    spawn(f, cancels_itself, NULL);
    assert_string_equal(f->trace, "done ");
}

/* --- conditions --- */

static void waits_first(void *arg)
{
    struct fixture *f = arg;
    assert_int_equal(co_cond_wait(f->loop, &f->cond, -1, NULL), 0);
    note(f, "first");
}

static void waits_second(void *arg)
{
    struct fixture *f = arg;
    assert_int_equal(co_cond_wait(f->loop, &f->cond, -1, NULL), 0);
    note(f, "second");
    loop_stop(f->loop);
}

static void waits_not_long(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    assert_int_equal(co_cond_wait(f->loop, &f->cond, 0, &err), -1);
    assert_int_equal(err.code, ERROR_TIMEOUT);
    note(f, "late");
    co_cond_wake(&f->cond);
    co_cond_wake(&f->cond);
    assert_string_equal(f->trace, "late ");
}

static void cond_wakes_in_order(void **state)
{
    struct fixture *f = *state;
    spawn(f, waits_first, NULL);
    spawn(f, waits_not_long, NULL);
    spawn(f, waits_second, NULL);
    run(f);
    assert_string_equal(f->trace, "late first second ");
}

static void was_cancelled(void *arg)
{
    struct fixture *f = arg;
    assert_int_equal(co_cond_wait(f->loop, &f->cond, -1, NULL), -1);
    note(f, "cancelled");
}

/* One that is on its way out must not swallow the wake of the next one. */
static void wake_passes_over_the_cancelled(void **state)
{
    struct fixture *f = *state;
    spawn(f, was_cancelled, &f->co);
    spawn(f, waits_second, NULL);
    co_cancel(f->co);
    co_cond_wake(&f->cond);
    run(f);
    assert_string_equal(f->trace, "cancelled second ");
}

static void counts(void *arg)
{
    struct fixture *f = arg;
    char ballast[8192];
    memset(ballast, 1, sizeof(ballast));
    assert_int_equal(co_cond_wait(f->loop, &f->cond, -1, NULL), 0);
    f->count += ballast[f->count % (int)sizeof(ballast)];
    if (f->count % 300 == 0)
        loop_stop(f->loop);
}

static void many_at_once_and_again(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 300; i++) /* more than the pool keeps */
            spawn(f, counts, NULL);
        co_cond_wake_all(&f->cond);
        run(f);
    }
    assert_int_equal(f->count, 900);
}

/* --- workers --- */

struct job {
    pthread_t thread;
    int value;
    int order;
    int *next;
};

static void compute(void *arg)
{
    struct job *job = arg;
    job->thread = pthread_self();
    job->value = 42;
    if (job->next != NULL)
        job->order = (*job->next)++; /* one thread: no lock needed */
}

static void hands_over(void *arg)
{
    struct fixture *f = arg;
    struct job job = {0};
    workers_run(f->workers, compute, &job);
    assert_int_equal(job.value, 42);
    assert_false(pthread_equal(job.thread, pthread_self()));
    if (++f->count == 50)
        loop_stop(f->loop);
}

static void workers_do_the_work(void **state)
{
    struct fixture *f = *state;
    struct error err;
    f->workers = workers_new(f->loop, 4, &err);
    assert_non_null(f->workers);
    for (int i = 0; i < 50; i++)
        spawn(f, hands_over, NULL);
    run(f);
    assert_int_equal(f->count, 50);
    struct job here = {0};
    workers_run(f->workers, compute, &here); /* outside a coroutine */
    assert_true(pthread_equal(here.thread, pthread_self()));
}

static int next_order;

static void keeps_order(void *arg)
{
    struct fixture *f = arg;
    int mine = f->count++;
    struct job job = {.next = &next_order};
    workers_run(f->workers, compute, &job);
    assert_int_equal(job.order, mine);
    if (mine == 19)
        loop_stop(f->loop);
}

static void one_worker_is_a_queue(void **state)
{
    struct fixture *f = *state;
    struct error err;
    f->workers = workers_new(f->loop, 1, &err);
    assert_non_null(f->workers);
    next_order = 0;
    for (int i = 0; i < 20; i++)
        spawn(f, keeps_order, NULL);
    run(f);
    assert_int_equal(next_order, 20);
}

static void hold(void *arg)
{
    pthread_mutex_lock(arg);
    pthread_mutex_unlock(arg);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void not_cancelled(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    workers_run(f->workers, hold, &gate); /* comes back only when the job is done */
    note(f, "job");
    assert_int_equal(co_sleep(f->loop, 0, &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    loop_stop(f->loop);
}

static void opens_gate(void *arg)
{
    struct fixture *f = arg;
    assert_int_equal(co_sleep(f->loop, 2, NULL), 0);
    note(f, "open");
    pthread_mutex_unlock(&gate);
}

static void cancel_waits_for_the_job(void **state)
{
    struct fixture *f = *state;
    struct error err;
    f->workers = workers_new(f->loop, 1, &err);
    assert_non_null(f->workers);
    pthread_mutex_lock(&gate);
    spawn(f, not_cancelled, &f->co);
    spawn(f, opens_gate, NULL);
    co_cancel(f->co);
    run(f);
    assert_string_equal(f->trace, "open job ");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(spawn_runs_at_once_and_nests), TEST(waiting_outside_is_an_error),
        TEST(fd_wait_and_timeout),          TEST(two_wait_on_one_fd),
        TEST(cancel_runs_cleanups),         TEST(cancel_the_running_one),
        TEST(cond_wakes_in_order),          TEST(wake_passes_over_the_cancelled),
        TEST(many_at_once_and_again),       TEST(workers_do_the_work),
        TEST(one_worker_is_a_queue),        TEST(cancel_waits_for_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
