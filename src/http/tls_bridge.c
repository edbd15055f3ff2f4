/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes between TLS and a pair of sockets. */

#include "http/tls_bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/co.h"
#include "loop/net.h"
#include "loop/task.h"

enum {
    PIECE = 16 * 1024,
    BURST = 1 << 20, /* moved before others get their turn */
};

struct tls_bridge {
    struct loop *loop;
    struct tls *tls;
    int fd;
    int inner; /* our end of the pair */
    struct task out;
    struct task in;
};

static int send_all(struct tls_bridge *b, char *data, size_t len, struct error *err)
{
    struct iovec iov = {.iov_base = data, .iov_len = len};
    while (iov.iov_len > 0) {
        ssize_t n = tls_send(b->tls, &iov, 1);
        if (n < 0 && errno != EAGAIN)
            return error_sys_as(err, ERROR_UNAVAILABLE, "sending by TLS");
        if (n < 0) {
            if (co_wait_fd(b->loop, b->fd, EPOLLOUT, HTTP_BODY_TIMEOUT_MS, err) != 0)
                return -1;
            continue;
        }
        iov.iov_base = (char *)iov.iov_base + n;
        iov.iov_len -= (size_t)n;
    }
    return 0;
}

static int take_turns(struct tls_bridge *b, size_t *burst, size_t n, struct error *err)
{
    *burst += n;
    if (*burst < BURST)
        return 0;
    *burst = 0;
    return co_sleep(b->loop, 0, err);
}

/* From the pair to the other side. */
static void carry_out(void *arg)
{
    struct tls_bridge *b = arg;
    struct error err;
    char piece[PIECE];
    size_t burst = 0;
    ssize_t n;
    while ((n = net_read(b->loop, b->inner, piece, sizeof(piece), -1, &err)) > 0)
        if (send_all(b, piece, (size_t)n, &err) != 0 || take_turns(b, &burst, (size_t)n, &err) != 0)
            break;
    if (n == 0) {
        tls_close(b->tls);
        shutdown(b->fd, SHUT_WR);
    } else /* whoever has the descriptor learns it by writing to it */
        shutdown(b->inner, SHUT_RD);
}

static void carry_in(void *arg)
{
    struct tls_bridge *b = arg;
    struct error err;
    char piece[PIECE];
    size_t burst = 0;
    for (;;) {
        ssize_t n = tls_recv(b->tls, piece, sizeof(piece));
        if (n == 0)
            break;
        if (n < 0 && errno != EAGAIN)
            break;
        if (n < 0
                ? co_wait_fd(b->loop, b->fd, EPOLLIN | EPOLLRDHUP, -1, &err) != 0
                : net_write(b->loop, b->inner, piece, (size_t)n, HTTP_BODY_TIMEOUT_MS, &err) != 0 ||
                      take_turns(b, &burst, (size_t)n, &err) != 0)
            break;
    }
    shutdown(b->inner, SHUT_WR);
}

int tls_bridge_new(struct loop *loop, struct tls *tls, int fd, int *ret_fd,
                   struct tls_bridge **ret_bridge, struct error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return error_sys(err, "making a pair of sockets");
    _cleanup_fd_ int outer = pair[0];
    struct tls_bridge *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        close(pair[1]);
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a TLS connection");
    }
    *b = (struct tls_bridge){.loop = loop, .tls = tls, .fd = fd, .inner = pair[1]};
    if (task_start(loop, &b->out, carry_out, b, err) != 0 ||
        task_start(loop, &b->in, carry_in, b, err) != 0) {
        tls_bridge_free(b);
        return -1;
    }
    *ret_fd = steal_fd(&outer);
    *ret_bridge = b;
    return 0;
}

void tls_bridge_drain(struct tls_bridge *bridge)
{
    task_join(&bridge->out);
}

void tls_bridge_free(struct tls_bridge *bridge)
{
    if (bridge == NULL)
        return;
    task_stop(&bridge->out);
    task_stop(&bridge->in);
    close(bridge->inner);
    free(bridge);
}
