/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sockets for coroutines. Every call tries first and waits only when the kernel says so: most
 * reads find their data there already, and a try costs less than two epoll_ctl().
 */

#include "loop/net.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/address.h"
#include "loop/co.h"

static int socket_for(const struct socket_address *address, struct error *err)
{
    int family = address->as.any.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_sys(err, "socket");
    if (family != AF_UNIX) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    return fd;
}

/* A socket file outlives its process. It is replaced only when nobody answers there. */
static int remove_dead_socket(const struct socket_address *address)
{
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, &address->as.any, address->len) == 0 || errno != ECONNREFUSED)
        return -1;
    return unlink(address->as.un.sun_path);
}

int net_listen(const char *address, int backlog, int *ret_fd, uint16_t *ret_port, struct error *err)
{
    struct socket_address at;
    if (socket_address_parse(address, &at, err) != 0)
        return -1;
    _cleanup_fd_ int fd = socket_for(&at, err);
    if (fd < 0)
        return -1;
    int on = 1;
    if (at.as.any.sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    int rc = bind(fd, &at.as.any, at.len);
    if (rc != 0 && errno == EADDRINUSE && at.as.any.sa_family == AF_UNIX) {
        errno = EADDRINUSE;
        if (remove_dead_socket(&at) != 0)
            errno = EADDRINUSE;
        else
            rc = bind(fd, &at.as.any, at.len);
    }
    if (rc != 0)
        return error_sys(err, "listening on %s", address);
    struct socket_address bound = {.len = sizeof(bound.as)};
    if (listen(fd, backlog) != 0 || getsockname(fd, &bound.as.any, &bound.len) != 0)
        return error_sys(err, "listening on %s", address);
    if (ret_port != NULL)
        *ret_port = socket_address_port(&bound);
    *ret_fd = steal_fd(&fd);
    return 0;
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

void net_take_descriptors(int fd, bool take)
{
    int on = take;
    setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
}

void net_close_foreign(int fd)
{
    static const struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); /* fails where it is no socket */
    close(fd);
}

static int connect_to(struct loop *loop, const struct socket_address *address, const char *name,
                      bool stranger, int64_t timeout_ms, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int fd = socket_for(address, err);
    if (fd < 0)
        return -1;
    if (stranger)
        net_take_descriptors(fd, false);
    int64_t began = loop_now(loop);
    int rc = connect(fd, &address->as.any, address->len);
    while (rc != 0 && errno == EAGAIN) { /* a unix socket's queue is full: nothing to wait on */
        if (timeout_ms >= 0 && loop_now(loop) - began >= timeout_ms)
            return error_set(err, ERROR_TIMEOUT, "connecting to %s: its queue is full", name);
        if (co_sleep(loop, 1, err) != 0)
            return -1;
        rc = connect(fd, &address->as.any, address->len);
    }
    if (rc != 0 && errno == EINPROGRESS) {
        if (co_wait_fd(loop, fd, EPOLLOUT, timeout_ms, err) != 0)
            return error_prefix(err, "connecting to %s", name);
        int why = 0;
        socklen_t len = sizeof(why);
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len);
        errno = why;
        rc = why == 0 ? 0 : -1;
    }
    if (rc != 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "connecting to %s", name);
    *ret_fd = steal_fd(&fd);
    return 0;
}

int net_connect(struct loop *loop, const char *address, int64_t timeout_ms, int *ret_fd,
                struct error *err)
{
    struct socket_address to;
    if (socket_address_parse(address, &to, err) != 0)
        return -1;
    return connect_to(loop, &to, address, false, timeout_ms, ret_fd, err);
}

static int connect_at(struct loop *loop, int dir_fd, const char *name, bool stranger,
                      int64_t timeout_ms, int *ret_fd, struct error *err)
{
    /* sun_path holds 107 bytes; through the descriptor the directory's own path does not count. */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
    int len = snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir_fd, name);
    if (len < 0 || (size_t)len >= sizeof(path))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a socket's name is too long: %s", name);
    struct socket_address to;
    if (socket_address_unix(path, &to, err) != 0)
        return -1;
    return connect_to(loop, &to, name, stranger, timeout_ms, ret_fd, err);
}

int net_connect_at(struct loop *loop, int dir_fd, const char *name, int64_t timeout_ms, int *ret_fd,
                   struct error *err)
{
    return connect_at(loop, dir_fd, name, false, timeout_ms, ret_fd, err);
}

int net_connect_to_stranger(struct loop *loop, int dir_fd, const char *name, int64_t timeout_ms,
                            int *ret_fd, struct error *err)
{
    return connect_at(loop, dir_fd, name, true, timeout_ms, ret_fd, err);
}

int net_accept(struct loop *loop, int listen_fd, int *ret_fd, struct error *err)
{
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            int on = 1; /* no harm where it is no TCP */
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            *ret_fd = fd;
            return 0;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN)
            return error_sys(err, "accepting a connection");
        if (co_wait_fd(loop, listen_fd, EPOLLIN, -1, err) != 0)
            return -1;
    }
}

int net_read_with_fd(struct loop *loop, int from, void *to, size_t len, int64_t timeout_ms, int *fd,
                     struct error *err)
{
    for (size_t done = 0; done < len;) {
        union {
            char bytes[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control;
        struct iovec iov = {.iov_base = (char *)to + done, .iov_len = len - done};
        struct msghdr message = {.msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 /* CMSG_SPACE would have room for a second one, to be lost */
                                 .msg_controllen = CMSG_LEN(sizeof(int))};
        ssize_t n = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            if (co_wait_fd(loop, from, EPOLLIN, timeout_ms, err) != 0)
                return -1;
            continue;
        }
        if (n <= 0)
            return error_set(err, ERROR_UNAVAILABLE, "the other end closed the connection");
        const struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        if (rights != NULL && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
            rights->cmsg_len == CMSG_LEN(sizeof(int))) {
            if (*fd >= 0)
                net_close_foreign(*fd);
            memcpy(fd, CMSG_DATA(rights), sizeof(*fd));
        }
        done += (size_t)n;
    }
    return 0;
}

ssize_t net_read(struct loop *loop, int fd, void *to, size_t len, int64_t timeout_ms,
                 struct error *err)
{
    for (;;) {
        ssize_t n = read(fd, to, len);
        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return error_sys_as(err, ERROR_UNAVAILABLE, "reading from a peer");
        if (co_wait_fd(loop, fd, EPOLLIN | EPOLLRDHUP, timeout_ms, err) != 0)
            return -1;
    }
}

int net_read_whole(struct loop *loop, int fd, void *to, size_t len, int64_t timeout_ms,
                   struct error *err)
{
    char *at = to;
    while (len > 0) {
        ssize_t n = net_read(loop, fd, at, len, timeout_ms, err);
        if (n < 0)
            return -1;
        if (n == 0)
            return error_set(err, ERROR_UNAVAILABLE, "the peer closed the connection");
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static ssize_t send_some(int fd, const char *from, size_t len)
{
    ssize_t n = send(fd, from, len, MSG_NOSIGNAL);
    return n < 0 && errno == ENOTSOCK ? write(fd, from, len) : n;
}

int net_write(struct loop *loop, int fd, const void *from, size_t len, int64_t timeout_ms,
              struct error *err)
{
    const char *at = from;
    while (len > 0) {
        ssize_t n = send_some(fd, at, len);
        if (n >= 0) {
            at += n;
            len -= (size_t)n;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return error_sys_as(err, ERROR_UNAVAILABLE, "writing to a peer");
        if (co_wait_fd(loop, fd, EPOLLOUT, timeout_ms, err) != 0)
            return -1;
    }
    return 0;
}
