/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client's connection, with TLS or without. What is detached after an upgrade is a plain
 * descriptor in both cases; TLS then goes on behind it, in a bridge that the client holds.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http/client_state.h"
#include "loop/co.h"
#include "loop/net.h"

int http_client_set_tls(struct http_client *client, struct tls_context *context, const char *name,
                        struct error *err)
{
    client->tls_name = strdup(name);
    if (client->tls_name == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a client");
    client->tls_context = context;
    return 0;
}

static int shake_hands(struct http_client *client, struct error *err)
{
    client->tls = tls_new(client->tls_context, client->fd, client->tls_name);
    if (client->tls == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a TLS connection");
    while (tls_handshake(client->tls) != 0) {
        if (errno != EAGAIN)
            return error_set(err, ERROR_UPSTREAM_FAILED, "TLS: %s", tls_problem(client->tls));
        if (co_wait_fd(client->loop, client->fd, tls_wants(client->tls), client->timeout_ms, err) !=
            0)
            return -1;
    }
    return 0;
}

int client_connect(struct http_client *client, struct error *err)
{
    if (net_connect(client->loop, client->address, client->timeout_ms, &client->fd, err) != 0)
        return -1;
    if (client->tls_context == NULL || shake_hands(client, err) == 0)
        return 0;
    client_disconnect(client);
    return -1;
}

void client_disconnect(struct http_client *client)
{
    if (client->tls != NULL && client->bridge == NULL) {
        tls_close(client->tls);
        tls_free(steal_ptr(client->tls));
    }
    if (client->fd >= 0 && !client->borrowed)
        close(client->fd);
    client->fd = -1;
    client->in_start = client->in_end = 0;
    client->in_answer = false;
}

ssize_t client_recv(struct http_client *client, void *to, size_t len)
{
    return client->tls != NULL ? tls_recv(client->tls, to, len)
                               : recv(client->fd, to, len, MSG_DONTWAIT);
}

ssize_t client_transmit(struct http_client *client, const char *data, size_t len)
{
    const struct iovec iov = {.iov_base = (char *)data, .iov_len = len};
    return client->tls != NULL ? tls_send(client->tls, &iov, 1)
                               : send(client->fd, data, len, MSG_NOSIGNAL);
}

/* By TLS not every byte that comes is one of an answer, so it has to be read to know. */
bool client_has_answer(struct http_client *client)
{
    char byte;
    if (client->tls == NULL)
        return recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
    if (client->in_end == client->in_cap)
        return true;
    ssize_t n = tls_recv(client->tls, client->in + client->in_end, client->in_cap - client->in_end);
    if (n > 0)
        client->in_end += (size_t)n;
    return n >= 0 || errno != EAGAIN;
}

int http_client_detach(struct http_client *client, struct slice *ret_early)
{
    *ret_early = (struct slice){client->in + client->in_start, client->in_end - client->in_start};
    client->in_start = client->in_end = 0;
    client->in_answer = false;
    if (client->tls == NULL)
        return steal_fd(&client->fd);
    int fd = -1;
    client->bridge_fd = client->fd;
    if (tls_bridge_new(client->loop, client->tls, client->fd, &fd, &client->bridge, NULL) != 0)
        return -1;
    client->fd = -1;
    return fd;
}

/* Once the loop has stopped nobody carries anything any more: the process is at its end. */
void client_end_bridge(struct http_client *client)
{
    if (client->bridge == NULL || co_self(client->loop) == NULL)
        return;
    tls_bridge_drain(client->bridge);
    tls_bridge_free(steal_ptr(client->bridge));
    tls_free(steal_ptr(client->tls));
    close(steal_fd(&client->bridge_fd));
}
