/* SPDX-License-Identifier: Apache-2.0 */

/* From an exchange to a bare connection. */

#include "http/upgrade.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "http/conn.h"

bool http_wants_upgrade(const struct http_exchange *x, const char *protocol)
{
    const struct http_request *request = &x->head.request;
    bool connection = false, upgrade = false;
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *h = &request->headers[i];
        if (strcasecmp(h->name, "Connection") == 0)
            connection |= http_list_has(h->value, "upgrade");
        else if (strcasecmp(h->name, "Upgrade") == 0)
            upgrade |= http_list_has(h->value, protocol);
    }
    return connection && upgrade && !x->head.http10 && request->content_length == 0;
}

/* A peer that vanished without a word is found out by the kernel. */
static void keep_alive(int fd)
{
    int on = 1, idle_s = 60, interval_s = 20, probes = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)); /* no-ops on a unix socket */
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

int http_upgrade(struct http_exchange *x, const char *protocol, int *ret_fd,
                 struct slice *ret_early, struct error *err)
{
    struct http_conn *c = x->conn;
    if (!http_wants_upgrade(x, protocol)) {
        http_set_header(x, "Upgrade", "%s", protocol);
        http_set_header(x, "Connection", "Upgrade");
        return error_set(err, ERROR_UPGRADE_REQUIRED,
                         "this path wants a GET with Connection: Upgrade and Upgrade: %s",
                         protocol);
    }
    if (x->state != ANSWER_NONE)
        return error_set(err, ERROR_INTERNAL, "the request was answered twice");
    if (buf_check(&x->fields, "the answer's header", err) != 0 ||
        exchange_answering(x, 101, true, err) != 0)
        return -1;
    char *head = arena_printf(
        x->arena,
        "HTTP/1.1 101 Switching Protocols\r\nServer: cella\r\nDate: %s\r\n"
        "Connection: Upgrade\r\nUpgrade: %s\r\n%s%s%s"
        "%.*s\r\n",
        server_date(c->server), protocol,
        x->has_request_id ? "" : "X-Request-Id: ", x->has_request_id ? "" : request_id(x),
        x->has_request_id ? "" : "\r\n", (int)x->fields.len, x->fields.data);
    x->status = 101;
    x->state = ANSWER_ENDED;
    x->close = true;
    struct iovec iov = {.iov_base = head, .iov_len = strlen(head)};
    if (conn_write(c, &iov, 1, false, err) != 0)
        return -1;
    keep_alive(c->fd);
    if (conn_release(c, ret_fd, err) != 0)
        return -1;
    *ret_early = (struct slice){c->in + c->in_start, conn_buffered(c)};
    return 0;
}
