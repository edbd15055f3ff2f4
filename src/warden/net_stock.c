/* SPDX-License-Identifier: Apache-2.0 */

/* The process ends when its channel does: with the warden, in whatever way that ended. */

#include "warden/net_stock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

enum { CHANNEL_FD = 3, HOME_FD = 4, ROUTER_FD = 5, HIGH_FD = 16, NICE = 5 };

struct answer {
    int index;
    bool made;
    struct error error;
};

union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

/* ---- the process ---- */

static int open_route(void *arg, struct error *err)
{
    return nl_open(NETLINK_ROUTE, arg, err);
}

static void reply(const struct answer *answer, const struct net_pair *pair)
{
    union control control = {0};
    struct iovec iov = {.iov_base = (void *)answer, .iov_len = sizeof(*answer)};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (answer->made) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(cmsg), &pair->network_namespace, sizeof(int));
    }
    if (sendmsg(CHANNEL_FD, &message, MSG_NOSIGNAL) != sizeof(*answer))
        _exit(1);
}

static int place(int from, int to)
{
    int high = fcntl(from, F_DUPFD_CLOEXEC, HIGH_FD);
    return high < 0 || dup3(high, to, O_CLOEXEC) < 0 ? -1 : 0;
}

/* Nothing else of the warden's is kept: it would hold what the warden closes. */
static _Noreturn void serve(int channel, struct router router)
{
    struct error err;
    int high_channel = fcntl(channel, F_DUPFD_CLOEXEC, HIGH_FD);
    int high_home = fcntl(router.home, F_DUPFD_CLOEXEC, HIGH_FD);
    int high_router = fcntl(router.fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high_channel < 0 || high_home < 0 || high_router < 0 ||
        place(high_channel, CHANNEL_FD) < 0 || place(high_home, HOME_FD) < 0 ||
        place(high_router, ROUTER_FD) < 0 || syscall(SYS_close_range, ROUTER_FD + 1, ~0u, 0) < 0)
        _exit(1);
    prctl(PR_SET_NAME, "cella-net-stock");
    setpriority(PRIO_PROCESS, 0, NICE);
    router.home = HOME_FD;
    router.fd = ROUTER_FD;
    router.rules.fd = -1;
    if (router_within(&router, ROUTER_FD, open_route, &router.route, &err) < 0)
        _exit(1);
    for (;;) {
        struct answer answer = {0};
        struct net_pair pair = NET_PAIR_INIT;
        ssize_t n = recv(CHANNEL_FD, &answer.index, sizeof(answer.index), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != sizeof(answer.index))
            _exit(0);
        answer.made = pair_make(&router, answer.index, &pair, &answer.error) == 0;
        reply(&answer, &pair);
        pair_release(&pair);
    }
}

/* ---- the warden's side ---- */

static void take_answer(struct net_stock *stock, const struct answer *answer, int fd)
{
    if (stock->asked > 0)
        stock->asked--;
    if (!answer->made) {
        if (answer->error.sys != EEXIST)
            log_warn("a network ahead of time: %.200s", answer->error.message);
        return;
    }
    struct net_pair pair = {.index = answer->index, .network_namespace = fd};
    if (stock->count < STOCK_SIZE)
        stock->ready[stock->count++] = pair;
    else
        pair_release(&pair);
}

static void channel_ready(struct source *source, uint32_t events)
{
    struct net_stock *stock = container_of(source, struct net_stock, channel);
    struct answer answer;
    union control control;
    int fd = -1;
    struct iovec iov = {.iov_base = &answer, .iov_len = sizeof(answer)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(source->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n != sizeof(answer)) { /* it died: the next one is started when it is needed */
        source_close(source);
        (void)waitpid(stock->pid, NULL, 0);
        stock->pid = 0;
        stock->asked = 0;
        return;
    }
    const struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
    if (cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS && cmsg->cmsg_len == CMSG_LEN(sizeof(fd)))
        memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
    answer.made = answer.made && fd >= 0;
    take_answer(stock, &answer, fd);
}

static int start(struct net_stock *stock, int epoll_fd, const struct router *router,
                 struct error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_sys(err, "making a channel");
    pid_t pid = fork();
    if (pid == 0)
        serve(ends[1], *router);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return error_sys(err, "starting a process");
    }
    stock->pid = pid;
    return source_watch(epoll_fd, &stock->channel, ends[0], EPOLLIN, channel_ready, err);
}

bool stock_take(struct net_stock *stock, struct net_pair *ret_pair)
{
    if (stock->count == 0)
        return false;
    *ret_pair = stock->ready[--stock->count];
    return true;
}

void stock_fill(struct net_stock *stock, int epoll_fd, const struct router *router,
                int (*next_index)(void *arg), void *arg)
{
    struct error err;
    if (stock->pid == 0 && start(stock, epoll_fd, router, &err) < 0) {
        log_warn("networks are not made ahead: %s", err.message);
        return;
    }
    while (stock->count + stock->asked < STOCK_SIZE && stock->channel.fd >= 0) {
        int index = next_index(arg);
        if (send(stock->channel.fd, &index, sizeof(index), MSG_NOSIGNAL | MSG_DONTWAIT) !=
            sizeof(index))
            return;
        stock->asked++;
    }
}

void stock_close(struct net_stock *stock)
{
    source_close(&stock->channel);
    while (stock->pid > 0 && waitpid(stock->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    while (stock->count > 0)
        pair_release(&stock->ready[--stock->count]);
    *stock = (struct net_stock)NET_STOCK_INIT;
}
