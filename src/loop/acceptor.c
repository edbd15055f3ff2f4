/* SPDX-License-Identifier: Apache-2.0 */

/* Accepting within a limit. When descriptors have run out it pauses: the connection stays in the
 * queue, and an event that nobody can act on would come again at once. */

#include "loop/acceptor.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "loop/co.h"

enum {
    ACCEPT_BATCH = 16, /* accepted before others get their turn */
    ACCEPT_PAUSE_MS = 100,
};

struct served {
    struct acceptor *owner;
    int fd;
    struct co *co;
    struct served *next;
    struct served **link; /* what points to it */
};

struct acceptor {
    struct loop *loop;
    int fd; /* -1: it does not listen any more */
    unsigned max, count;
    acceptor_serve *serve;
    void *ctx;
    struct watch watch;
    struct timer pause;
    struct served *served;
    struct co_cond ended; /* one of them has */
};

static void listen_again(struct acceptor *a)
{
    if (a->fd >= 0 && a->count < a->max)
        watch_change(&a->watch, EPOLLIN, NULL);
}

static void forget(struct served *s)
{
    struct acceptor *a = s->owner;
    *s->link = s->next;
    if (s->next != NULL)
        s->next->link = s->link;
    close(s->fd);
    free(s);
    if (a->count-- == a->max)
        listen_again(a);
    co_cond_wake_all(&a->ended);
}

static void serve_one(void *arg)
{
    struct served *s = arg;
    s->co = co_self(s->owner->loop);
    s->owner->serve(s->owner->ctx, s->fd);
    forget(s);
}

static void take(struct acceptor *a, int fd)
{
    struct error err;
    struct served *s = calloc(1, sizeof(*s));
    if (s == NULL)
        abort();
    *s = (struct served){.owner = a, .fd = fd, .next = a->served, .link = &a->served};
    if (s->next != NULL)
        s->next->link = &s->next;
    a->served = s;
    a->count++;
    if (co_spawn(a->loop, serve_one, s, NULL, &err) < 0) {
        log_warn("a connection was dropped: %s", err.message);
        forget(s);
    }
}

static void pause_over(struct timer *timer)
{
    listen_again(container_of(timer, struct acceptor, pause));
}

static void accept_some(struct watch *watch, uint32_t events)
{
    struct acceptor *a = container_of(watch, struct acceptor, watch);
    for (int i = 0; i < ACCEPT_BATCH && a->count < a->max; i++) {
        int fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            take(a, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            log_warn("accepting connections pauses: %m");
            watch_change(watch, 0, NULL);
            timer_start(a->loop, &a->pause, ACCEPT_PAUSE_MS, pause_over);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
    if (a->count >= a->max)
        watch_change(watch, 0, NULL);
}

int acceptor_new(struct loop *loop, int listen_fd, unsigned max, acceptor_serve *serve, void *ctx,
                 struct acceptor **ret_acceptor, struct error *err)
{
    struct acceptor *a = calloc(1, sizeof(*a));
    if (a == NULL)
        abort();
    *a = (struct acceptor){.loop = loop, .fd = listen_fd, .max = max, .serve = serve, .ctx = ctx};
    if (watch_start(loop, &a->watch, listen_fd, EPOLLIN, accept_some, err) < 0) {
        close(listen_fd);
        free(a);
        return -1;
    }
    *ret_acceptor = a;
    return 0;
}

void acceptor_end(struct acceptor *a)
{
    struct error err;
    watch_stop(&a->watch);
    timer_stop(&a->pause);
    close(steal_fd(&a->fd));
    for (struct served *s = a->served; s != NULL; s = s->next)
        co_cancel(s->co);
    while (a->count > 0)
        if (co_cond_wait(a->loop, &a->ended, -1, &err) < 0)
            return; /* cancelled itself: whoever is left uses it */
    free(a);
}
