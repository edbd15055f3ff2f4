/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Moving bytes from socket to socket inside the kernel. splice(2) needs a pipe in the middle; a
 * pipe that was emptied can serve the next pump, one that was left with bytes in it cannot.
 */

#include "loop/net.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loop/co.h"
#include "loop/state.h"

enum {
    PIPE_SIZE = 1 << 20,
    BURST = 4 << 20, /* moved before others get their turn */
};

int loop_pipe_take(struct loop *loop, struct pipe_pair *ret_pipe, struct error *err)
{
    if (loop->pipe_count > 0) {
        *ret_pipe = loop->pipes[--loop->pipe_count];
        return 0;
    }
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return error_sys(err, "pipe2");
    fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE); /* where the limits allow it; else what there is */
    *ret_pipe = (struct pipe_pair){.read_fd = fds[0], .write_fd = fds[1]};
    return 0;
}

void loop_pipe_give(struct loop *loop, struct pipe_pair pipe, bool empty)
{
    if (empty && loop->pipe_count < LOOP_IDLE_PIPES) {
        loop->pipes[loop->pipe_count++] = pipe;
        return;
    }
    close(pipe.read_fd);
    close(pipe.write_fd);
}

/* One side of a pump: which descriptor has to be waited for when splice() says EAGAIN. */
struct side {
    int from;
    int to;
    int wait_fd;
    uint32_t events;
};

struct pump {
    int64_t timeout_ms;
    net_wait *wait;
    void *ctx;
};

/* more: further bytes follow soon, so the kernel may wait to fill its packets. */
static ssize_t move(const struct pump *pump, const struct side *side, uint64_t len, bool more,
                    struct error *err)
{
    unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0);
    size_t most = len > PIPE_SIZE ? PIPE_SIZE : (size_t)len;
    for (;;) {
        ssize_t n = splice(side->from, NULL, side->to, NULL, most, flags);
        if (n > 0)
            return n;
        if (n == 0)
            return error_set(err, ERROR_UNAVAILABLE, "the peer closed the connection");
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return error_sys_as(err, ERROR_UNAVAILABLE, "moving bytes between peers");
        if (pump->wait(pump->ctx, side->wait_fd, side->events, pump->timeout_ms, err) != 0)
            return -1;
    }
}

static int run(struct loop *loop, const struct pump *pump, const struct side *in,
               const struct side *out, uint64_t len, uint64_t *in_pipe, struct error *err)
{
    uint64_t burst = 0;
    while (len > 0) {
        ssize_t n = move(pump, in, len, false, err);
        if (n < 0)
            return -1;
        len -= (uint64_t)n;
        burst += (uint64_t)n;
        *in_pipe = (uint64_t)n;
        while (*in_pipe > 0) {
            n = move(pump, out, *in_pipe, len > 0, err);
            if (n < 0)
                return -1;
            *in_pipe -= (uint64_t)n;
        }
        if (burst >= BURST && len > 0) {
            burst = 0;
            if (co_sleep(loop, 0, err) != 0)
                return -1;
        }
    }
    return 0;
}

int net_pump_with(struct loop *loop, int from, int to, uint64_t len, int64_t timeout_ms,
                  net_wait *wait, void *ctx, struct error *err)
{
    struct pipe_pair pipe = {.read_fd = -1, .write_fd = -1};
    if (loop_pipe_take(loop, &pipe, err) != 0)
        return -1;
    struct pump pump = {.timeout_ms = timeout_ms, .wait = wait, .ctx = ctx};
    struct side in = {
        .from = from, .to = pipe.write_fd, .wait_fd = from, .events = EPOLLIN | EPOLLRDHUP};
    struct side out = {.from = pipe.read_fd, .to = to, .wait_fd = to, .events = EPOLLOUT};
    uint64_t in_pipe = 0;
    int rc = run(loop, &pump, &in, &out, len, &in_pipe, err);
    loop_pipe_give(loop, pipe, in_pipe == 0);
    return rc;
}

static int wait_fd(void *ctx, int fd, uint32_t events, int64_t timeout_ms, struct error *err)
{
    return co_wait_fd(ctx, fd, events, timeout_ms, err);
}

int net_pump(struct loop *loop, int from, int to, uint64_t len, int64_t timeout_ms,
             struct error *err)
{
    return net_pump_with(loop, from, to, len, timeout_ms, wait_fd, loop, err);
}
