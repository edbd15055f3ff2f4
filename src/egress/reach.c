/* SPDX-License-Identifier: Apache-2.0 */

/* Asking the kernel for routes (rtnetlink answers at once), and connecting. */

#include "egress/reach.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/co.h"

int reach_init(struct reach *reach, struct loop *loop, struct error *err)
{
    struct timeval patience = {.tv_sec = 2};
    *reach = (struct reach){.loop = loop, .route_fd = -1};
    reach->route_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (reach->route_fd < 0)
        return error_sys(err, "a socket to the kernel's routes");
    setsockopt(reach->route_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return 0;
}

void reach_release(struct reach *reach)
{
    cleanup_fd(&reach->route_fd);
    reach->route_fd = -1;
}

struct route_question {
    struct nlmsghdr header;
    struct rtmsg route;
    struct rtattr attribute;
    unsigned char address[16];
};

/* The type of the route that the kernel would take; RTN_UNREACHABLE when it has none. */
static int read_route_type(struct reach *reach)
{
    union {
        struct nlmsghdr header;
        char bytes[4096];
    } answer;
    for (;;) {
        ssize_t n = recv(reach->route_fd, &answer, sizeof(answer), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < (ssize_t)sizeof(answer.header))
            return RTN_UNREACHABLE;
        if (answer.header.nlmsg_seq != reach->sequence) /* somebody gave up waiting for it */
            continue;
        if (answer.header.nlmsg_type != RTM_NEWROUTE ||
            n < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg)))
            return RTN_UNREACHABLE;
        return ((struct rtmsg *)NLMSG_DATA(&answer.header))->rtm_type;
    }
}

bool reach_is_outside(struct reach *reach, const struct net_address *address)
{
    size_t len = address->family == NET_IPV4 ? 4 : 16;
    struct route_question question = {
        .header = {.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(struct rtmsg)) + RTA_LENGTH(len)),
                   .nlmsg_type = RTM_GETROUTE,
                   .nlmsg_flags = NLM_F_REQUEST,
                   .nlmsg_seq = ++reach->sequence},
        .route = {.rtm_family = address->family == NET_IPV4 ? AF_INET : AF_INET6,
                  .rtm_dst_len = (unsigned char)(len * 8)},
        .attribute = {.rta_type = RTA_DST, .rta_len = (unsigned short)RTA_LENGTH(len)},
    };
    memcpy(question.address, address->bytes, len);
    if (send(reach->route_fd, &question, question.header.nlmsg_len, 0) < 0)
        return false;
    return read_route_type(reach) == RTN_UNICAST;
}

socklen_t reach_sockaddr(const struct net_address *address, uint16_t port,
                         struct sockaddr_storage *ret_to)
{
    struct sockaddr_in *in = (struct sockaddr_in *)ret_to;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret_to;
    memset(ret_to, 0, sizeof(*ret_to));
    if (address->family == NET_IPV4) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof(*in);
    }
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, address->bytes, 16);
    return sizeof(*in6);
}

int reach_connect(struct reach *reach, const struct net_address *address, uint16_t port,
                  int64_t timeout_ms, int *ret_fd, struct error *err)
{
    struct sockaddr_storage to;
    socklen_t len = reach_sockaddr(address, port, &to);
    int on = 1, why = 0;
    socklen_t why_len = sizeof(why);
    if (!reach_is_outside(reach, address))
        return error_set(err, ERROR_FORBIDDEN, "the address is this machine's, or leads nowhere");
    _cleanup_fd_ int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "a socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (struct sockaddr *)&to, len) != 0) {
        if (errno != EINPROGRESS)
            return error_sys_as(err, ERROR_UNAVAILABLE, "connecting");
        if (co_wait_fd(reach->loop, fd, EPOLLOUT, timeout_ms, err) != 0)
            return -1;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &why_len);
        errno = why;
        if (why != 0)
            return error_sys_as(err, ERROR_UNAVAILABLE, "connecting");
    }
    *ret_fd = steal_fd(&fd);
    return 0;
}
