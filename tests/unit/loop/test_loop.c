/* SPDX-License-Identifier: Apache-2.0 */

/* Timers and descriptors: order, and stopping or freeing anything from inside a callback. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/loop.h"

static struct loop *loop_make(void)
{
    struct error err;
    struct loop *loop = loop_new(&err);
    assert_non_null(loop);
    return loop;
}

static void run(struct loop *loop)
{
    struct error err;
    assert_int_equal(loop_run(loop, &err), 0);
}

/* --- timers --- */

struct ringer {
    struct timer timer;
    char name;
    char *trace; /* names in the order they rang */
    bool last;
    struct ringer *victim; /* stopped when this one rings */
    unsigned again;        /* restarts itself so often */
};

static void ring(struct timer *timer)
{
    struct ringer *r = container_of(timer, struct ringer, timer);
    r->trace[strlen(r->trace)] = r->name;
    struct loop *loop = timer->loop;
    assert_null(loop); /* one-shot: stopped before it rings */
    if (r->victim != NULL)
        timer_stop(&r->victim->timer);
}

static void ring_and_stop(struct timer *timer)
{
    struct ringer *r = container_of(timer, struct ringer, timer);
    r->trace[strlen(r->trace)] = r->name;
}

static struct loop *the_loop; /* for callbacks that need it; one test at a time */

static void stop_loop(struct timer *timer)
{
    loop_stop(the_loop);
}

static void timers_fire_in_order(void **state)
{
    char trace[16] = "";
    struct loop *loop = the_loop = loop_make();
    static const struct {
        char name;
        int64_t delay;
    } rows[] = {{'d', 12}, {'a', 0}, {'c', 6}, {'b', 3}, {'e', 12}, {'f', 12}};
    struct ringer ringers[ARRAY_LEN(rows)] = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ringers[i].name = rows[i].name;
        ringers[i].trace = trace;
        timer_start(loop, &ringers[i].timer, rows[i].delay, ring);
    }
    struct timer end = {0};
    timer_start(loop, &end, 13, stop_loop);
    run(loop);
    assert_string_equal(trace, "abcdef"); /* equal times: in the order of starting */
    loop_free(loop);
}

static void timer_can_stop_others_and_be_moved(void **state)
{
    char trace[16] = "";
    struct loop *loop = the_loop = loop_make();
    struct ringer a = {.name = 'a', .trace = trace}, b = {.name = 'b', .trace = trace},
                  c = {.name = 'c', .trace = trace};
    a.victim = &b;
    timer_start(loop, &a.timer, 1, ring);
    timer_start(loop, &b.timer, 1, ring);
    timer_start(loop, &c.timer, 1000 * 1000, ring);
    timer_start(loop, &c.timer, 2, ring); /* moved */
    struct timer end = {0};
    timer_start(loop, &end, 5, stop_loop);
    run(loop);
    assert_string_equal(trace, "ac");
    timer_stop(&b.timer); /* fine twice */
    loop_free(loop);
}

/* Removing from the middle of the heap must keep it a heap. */
static void timers_random_stops(void **state)
{
    enum { COUNT = 500 };
    struct loop *loop = the_loop = loop_make();
    struct ringer *ringers = calloc(COUNT, sizeof(*ringers));
    char trace[COUNT + 1] = "";
    srand(7);
    size_t kept = 0;
    for (int i = 0; i < COUNT; i++) {
        int delay = rand() % 20;
        ringers[i] = (struct ringer){.name = (char)('A' + delay), .trace = trace};
        timer_start(loop, &ringers[i].timer, delay, ring_and_stop);
    }
    for (int i = 0; i < COUNT; i++) {
        if (rand() % 3 == 0)
            timer_stop(&ringers[i].timer);
        else
            kept++;
    }
    struct timer end = {0};
    timer_start(loop, &end, 21, stop_loop);
    run(loop);
    assert_int_equal(strlen(trace), kept);
    for (size_t i = 1; i < kept; i++)
        assert_true(trace[i - 1] <= trace[i]);
    free(ringers);
    loop_free(loop);
}

static void ring_again(struct timer *timer)
{
    struct ringer *r = container_of(timer, struct ringer, timer);
    r->again++;
    timer_start(the_loop, timer, 0, ring_again);
}

static void read_and_stop(struct watch *watch, uint32_t events)
{
    watch_stop(watch);
    loop_stop(the_loop);
}

/* A timer that is always due must not keep the descriptors from their turn. */
static void zero_timer_does_not_starve(void **state)
{
    struct loop *loop = the_loop = loop_make();
    struct error err;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct ringer r = {0};
    struct watch watch = {0};
    timer_start(loop, &r.timer, 0, ring_again);
    assert_int_equal(watch_start(loop, &watch, fds[0], EPOLLIN, read_and_stop, &err), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    run(loop);
    timer_stop(&r.timer);
    close(fds[0]);
    close(fds[1]);
    loop_free(loop);
}

/* --- descriptors --- */

struct peer {
    struct watch watch;
    int fds[2];
    int called;
    struct peer *other; /* freed by the callback of this one */
};

static struct peer *peer_new(struct loop *loop, void (*ready)(struct watch *, uint32_t))
{
    struct error err;
    struct peer *peer = calloc(1, sizeof(*peer));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, peer->fds), 0);
    assert_int_equal(write(peer->fds[1], "x", 1), 1);
    assert_int_equal(watch_start(loop, &peer->watch, peer->fds[0], EPOLLIN, ready, &err), 0);
    return peer;
}

static void peer_free(struct peer *peer)
{
    watch_stop(&peer->watch);
    close(peer->fds[0]);
    close(peer->fds[1]);
    free(peer);
}

/* Whichever of the two is told first frees both: the other one's event is stale by then. */
static void free_both(struct watch *watch, uint32_t events)
{
    struct peer *peer = container_of(watch, struct peer, watch);
    peer_free(peer->other);
    peer_free(peer);
    loop_stop(the_loop);
}

static void stale_events_are_dropped(void **state)
{
    struct loop *loop = the_loop = loop_make();
    struct peer *a = peer_new(loop, free_both), *b = peer_new(loop, free_both);
    a->other = b;
    b->other = a;
    run(loop);
    loop_free(loop);
}

static void other_ready(struct watch *watch, uint32_t events)
{
    container_of(watch, struct peer, watch)->called++;
}

/* Stops the other and starts the same struct on another descriptor: no event of the old one. */
static void restart_other(struct watch *watch, uint32_t events)
{
    struct peer *peer = container_of(watch, struct peer, watch);
    struct peer *other = peer->other;
    struct error err;
    watch_stop(watch);
    watch_stop(&other->watch);
    assert_int_equal(
        watch_start(the_loop, &other->watch, other->fds[1], EPOLLIN, other_ready, &err), 0);
}

static void restarted_watch_gets_no_old_event(void **state)
{
    struct loop *loop = the_loop = loop_make();
    struct peer *a = peer_new(loop, restart_other), *b = peer_new(loop, restart_other);
    a->other = b;
    b->other = a;
    struct timer end = {0};
    timer_start(loop, &end, 5, stop_loop);
    run(loop);
    assert_int_equal(a->called + b->called, 0); /* nothing was ever written the other way */
    peer_free(a);
    peer_free(b);
    loop_free(loop);
}

static void mute(struct watch *watch, uint32_t events)
{
    struct error err;
    container_of(watch, struct peer, watch)->called++;
    assert_true(events & EPOLLIN);
    assert_int_equal(watch_change(watch, 0, &err), 0);
}

static void changed_watch_is_silent(void **state)
{
    struct loop *loop = the_loop = loop_make();
    struct peer *a = peer_new(loop, mute);
    struct timer end = {0};
    timer_start(loop, &end, 5, stop_loop);
    run(loop);
    assert_int_equal(a->called, 1); /* level-triggered, so only the change can have stopped it */
    peer_free(a);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order),
        cmocka_unit_test(timer_can_stop_others_and_be_moved),
        cmocka_unit_test(timers_random_stops),
        cmocka_unit_test(zero_timer_does_not_starve),
        cmocka_unit_test(stale_events_are_dropped),
        cmocka_unit_test(restarted_watch_gets_no_old_event),
        cmocka_unit_test(changed_watch_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
