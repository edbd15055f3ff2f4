/* SPDX-License-Identifier: Apache-2.0 */

/* Asking the warden for descriptors, one at a time, and connecting those that are sockets. */

#include "provider/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "loop/net.h"
#include "wire/messages.h"

enum {
    ASK_TIMEOUT_MS = 30 * 1000,
    PAYLOAD_MAX = 4096, /* an error, or an event that is not for us */
};

/* --- asking --- */

/* The answer to request `id`; events and answers that nobody waited for are passed over. */
static int read_answer(struct dialer *d, uint32_t id, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int fd = -1;
    for (;;) {
        unsigned char head[FRAME_HEADER_SIZE];
        char payload[PAYLOAD_MAX];
        struct frame_header header;
        if (net_read_with_fd(d->loop, d->fd, head, sizeof(head), ASK_TIMEOUT_MS, &fd, err) != 0 ||
            frame_header_decode(head, &header, err) != 0)
            return -1;
        if (header.length > sizeof(payload))
            return error_set(err, ERROR_UNAVAILABLE, "the warden's answer is too long");
        if (net_read_with_fd(d->loop, d->fd, payload, header.length, ASK_TIMEOUT_MS, &fd, err) != 0)
            return -1;
        if (header.id != id) {
            cleanup_fd(&fd);
            fd = -1;
            continue;
        }
        if (header.type == WIRE_ERROR)
            return wire_take_error((struct slice){payload, header.length}, err);
        if (header.type != WIRE_OK || fd < 0)
            return error_set(err, ERROR_UNAVAILABLE, "the warden sent no descriptor");
        *ret_fd = steal_fd(&fd);
        return 0;
    }
}

static uint32_t next_id(struct dialer *d)
{
    return ++d->last_id == 0 ? ++d->last_id : d->last_id;
}

static int ask(struct dialer *d, const struct wire_schema *schema, const void *request, int *ret_fd,
               struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1024);
    if (d->fd < 0) {
        const struct warden_hello hello = {.epoch = d->epoch};
        if (net_connect_at(d->loop, d->run_fd, "warden.sock", ASK_TIMEOUT_MS, &d->fd, err) != 0)
            return -1;
        wire_encode(&out, &warden_hello_schema, next_id(d), &hello); /* its answer is passed over */
    }
    wire_encode(&out, schema, next_id(d), request);
    if (net_write(d->loop, d->fd, out.data, out.len, ASK_TIMEOUT_MS, err) != 0)
        return -1;
    return read_answer(d, d->last_id, ret_fd, err);
}

static void hang_up(struct dialer *d)
{
    if (d->fd >= 0)
        close(steal_fd(&d->fd));
}

/* Requests queue up for the connection; the last one closes it, so that events do not pile up in
 * one that nobody reads. */
int dialer_ask(struct dialer *d, const struct wire_schema *schema, const void *request, int *ret_fd,
               struct error *err)
{
    if (d->users == 0)
        d->fd = -1;
    d->users++;
    int rc = 0;
    while (rc == 0 && d->busy)
        rc = co_cond_wait(d->loop, &d->free, ASK_TIMEOUT_MS, err);
    if (rc == 0) {
        struct error why = {0};
        d->busy = true;
        rc = ask(d, schema, request, ret_fd, &why);
        d->busy = false;
        if (rc != 0)
            error_set(err, why.code, "%s", why.message);
        /* A lost connection, or one with half an answer on it, is not for the next one. */
        if (rc != 0 && (why.code == ERROR_UNAVAILABLE || why.code == ERROR_TIMEOUT ||
                        why.code == ERROR_CANCELLED))
            hang_up(d);
    }
    if (--d->users == 0)
        hang_up(d);
    co_cond_wake_all(&d->free);
    return rc;
}

/* --- connecting --- */

static int connect_to(struct dialer *d, int fd, const struct sockaddr *to, socklen_t len,
                      int64_t timeout_ms, struct error *err)
{
    int rc = connect(fd, to, len);
    if (rc != 0 && errno == EINPROGRESS) {
        socklen_t size = sizeof(rc);
        if (co_wait_fd(d->loop, fd, EPOLLOUT, timeout_ms, err) != 0)
            return -1;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &rc, &size);
        errno = rc;
        rc = rc == 0 ? 0 : -1;
    }
    return rc == 0 ? 0 : error_sys_as(err, ERROR_PORT_NOT_LISTENING, "connecting");
}

static int dial_family(struct dialer *d, const char *id, uint64_t family, uint16_t port,
                       int64_t timeout_ms, int *ret_fd, struct error *err)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const struct sockaddr *to =
        family == SOCKET_IPV4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
    _cleanup_fd_ int fd = -1;
    const struct warden_socket request = {.id = id, .family = family};
    if (dialer_ask(d, &warden_socket_schema, &request, &fd, err) != 0)
        return -1;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect_to(d, fd, to, family == SOCKET_IPV4 ? sizeof(v4) : sizeof(v6), timeout_ms, err) !=
        0)
        return -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int dialer_dial_name(struct dialer *d, const char *id, const char *name, int64_t timeout_ms,
                     int *ret_fd, struct error *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    _cleanup_fd_ int fd = -1;
    const struct warden_socket request = {.id = id, .family = SOCKET_UNIX};
    if (len == 0 || len >= sizeof(to.sun_path))
        return error_set(err, ERROR_INVALID_ARGUMENT, "not a socket's name: \"%.40s\"", name);
    memcpy(to.sun_path + 1, name, len); /* behind a NUL: abstract, and never a path of ours */
    if (dialer_ask(d, &warden_socket_schema, &request, &fd, err) != 0)
        return -1;
    net_take_descriptors(fd, false);
    if (connect_to(d, fd, (const struct sockaddr *)&to,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len), timeout_ms,
                   err) != 0)
        return -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int dialer_dial(struct dialer *d, const char *id, uint16_t port, int64_t timeout_ms, int *ret_fd,
                struct error *err)
{
    struct error why = {0};
    static const uint64_t families[] = {SOCKET_IPV4, SOCKET_IPV6};
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        if (dial_family(d, id, families[i], port, timeout_ms, ret_fd, &why) == 0)
            return 0;
        if (why.code != ERROR_PORT_NOT_LISTENING)
            return error_set(err, why.code, "port %u: %s", port, why.message);
    }
    return error_set(err, ERROR_PORT_NOT_LISTENING,
                     "nothing listens on port %u of the sandbox's loopback (127.0.0.1, ::1)", port);
}
