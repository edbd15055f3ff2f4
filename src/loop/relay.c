/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two sockets, joined. Each direction is a task: it waits, moves what is there, and passes the end
 * on. A little is copied through the stack; much goes through a pipe inside the kernel, which is
 * held only while bytes are in it, so that a thousand silent tunnels hold none.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "loop/net.h"
#include "loop/state.h"
#include "loop/task.h"

enum {
    PIECE = 16 * 1024,
    MOST = 1 << 20,
    BURST = 4 << 20, /* moved before others get their turn */
};

struct relay {
    struct loop *loop;
    int64_t idle_ms;
    int64_t *moved_at;
    unsigned running; /* directions */
    struct co_cond ended;
    bool failed;
    struct error why;
};

struct direction {
    struct relay *relay;
    int from;
    int to;
    uint64_t *moved;
    uint64_t burst;
};

int net_turn(struct loop *loop, uint64_t *burst, size_t moved, struct error *err)
{
    *burst += moved;
    if (*burst < BURST)
        return 0;
    *burst = 0;
    return co_sleep(loop, 0, err);
}

/* Silence is what both directions share. */
static int wait_for(struct relay *r, int fd, uint32_t events, struct error *err)
{
    for (;;) {
        struct error why;
        int64_t left = *r->moved_at + r->idle_ms - loop_now(r->loop);
        if (co_wait_fd(r->loop, fd, events, left > 0 ? left : 0, &why) == 0)
            return 0;
        if (why.code != ERROR_TIMEOUT || *r->moved_at + r->idle_ms <= loop_now(r->loop))
            return error_set(err, why.code, "%s", why.message);
    }
}

static int broken(struct error *err)
{
    return error_sys_as(err, ERROR_UNAVAILABLE, "a side of the tunnel broke");
}

static int turn(struct direction *d, size_t n, struct error *err)
{
    *d->relay->moved_at = loop_now(d->relay->loop);
    *d->moved += n;
    return net_turn(d->relay->loop, &d->burst, n, err);
}

static int send_all(struct direction *d, const char *data, size_t len, struct error *err)
{
    while (len > 0) {
        ssize_t n = send(d->to, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (wait_for(d->relay, d->to, EPOLLOUT, err) != 0)
                return -1;
        } else if (errno != EINTR)
            return broken(err);
    }
    return 0;
}

/* What is there, up to a piece. 0: nothing yet; -2: the end. */
static ssize_t copy_some(struct direction *d, struct error *err)
{
    char piece[PIECE];
    ssize_t n = recv(d->from, piece, sizeof(piece), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return broken(err);
    if (n == 0)
        return -2;
    return send_all(d, piece, (size_t)n, err) != 0 ? -1 : n;
}

/* Out of the pipe, to the last byte. */
static int empty_pipe(struct direction *d, int pipe_fd, size_t *left, struct error *err)
{
    while (*left > 0) {
        ssize_t n = splice(pipe_fd, NULL, d->to, NULL, *left, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n > 0)
            *left -= (size_t)n;
        else if (n < 0 && errno == EAGAIN) {
            if (wait_for(d->relay, d->to, EPOLLOUT, err) != 0)
                return -1;
        } else if (n == 0 || errno != EINTR)
            return broken(err);
    }
    return 0;
}

/* As copy_some(), for much. */
static ssize_t splice_some(struct direction *d, struct error *err)
{
    struct pipe_pair pipe;
    if (loop_pipe_take(d->relay->loop, &pipe, err) != 0)
        return -1;
    ssize_t n = splice(d->from, NULL, pipe.write_fd, NULL, MOST, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    int why = errno;
    size_t left = n > 0 ? (size_t)n : 0;
    int rc = empty_pipe(d, pipe.read_fd, &left, err);
    loop_pipe_give(d->relay->loop, pipe, left == 0);
    if (rc != 0 || n > 0)
        return rc != 0 ? -1 : n;
    errno = why;
    if (n == 0)
        return -2;
    return errno == EAGAIN || errno == EINTR ? 0 : broken(err);
}

static int run_direction(struct direction *d, struct error *err)
{
    ssize_t n = 0;
    for (;;) {
        n = n < PIECE ? copy_some(d, err) : splice_some(d, err);
        if (n == -2)
            return shutdown(d->to, SHUT_WR) == 0 || errno == ENOTCONN ? 0 : broken(err);
        if (n < 0)
            return -1;
        if (n == 0 ? wait_for(d->relay, d->from, EPOLLIN | EPOLLRDHUP, err) != 0
                   : turn(d, (size_t)n, err) != 0)
            return -1;
    }
}

static void direction_main(void *arg)
{
    struct direction *d = arg;
    struct relay *r = d->relay;
    struct error why;
    if (run_direction(d, &why) != 0 && !r->failed) {
        r->failed = true;
        r->why = why;
    }
    r->running--;
    co_cond_wake_all(&r->ended);
}

int net_relay_counted(struct loop *loop, int a, int b, int64_t idle_ms, struct net_relayed *relayed,
                      struct error *err)
{
    int64_t moved_at = loop_now(loop);
    struct relay r = {.loop = loop, .idle_ms = idle_ms, .moved_at = &moved_at, .running = 2};
    struct direction there = {.relay = &r, .from = a, .to = b, .moved = &relayed->there};
    struct direction back = {.relay = &r, .from = b, .to = a, .moved = &relayed->back};
    struct task tasks[2] = {0};
    if (task_start(loop, &tasks[0], direction_main, &there, err) != 0)
        return -1;
    int rc = task_start(loop, &tasks[1], direction_main, &back, err);
    while (rc == 0 && r.running > 0 && !r.failed)
        rc = co_cond_wait(loop, &r.ended, -1, err);
    task_stop(&tasks[0]);
    task_stop(&tasks[1]);
    if (rc == 0 && r.failed)
        rc = error_set(err, r.why.code, "%s", r.why.message);
    return rc;
}

int net_relay(struct loop *loop, int a, int b, int64_t idle_ms, struct error *err)
{
    struct net_relayed relayed = {0};
    return net_relay_counted(loop, a, b, idle_ms, &relayed, err);
}

int net_flow(struct loop *loop, int from, int to, int64_t idle_ms, int64_t *moved_at,
             uint64_t *moved, struct error *err)
{
    struct relay r = {.loop = loop, .idle_ms = idle_ms, .moved_at = moved_at};
    struct direction d = {.relay = &r, .from = from, .to = to, .moved = moved};
    return run_direction(&d, err);
}
