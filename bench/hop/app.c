/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program behind a proxy: one thread, one epoll, answers from memory, so that what is measured
 * is the way to it. Static, because it runs inside a sandbox too.
 *
 *     app PORT      on 127.0.0.1; GET /small: 1 KiB, GET /big: 64 MiB; connections are kept
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SMALL = 1024, BIG = 64 << 20, CONNECTIONS = 1024, IN = 8192 };

struct connection {
    char in[IN];
    size_t in_len;
    const char *body;
    size_t head_left, body_left;
    char head[128];
    size_t head_at;
};

static struct connection *connections[CONNECTIONS];
static char *body;

static void drop(int fd)
{
    free(connections[fd]);
    connections[fd] = NULL;
    close(fd);
}

/* Sends what is owed; 0: done, 1: later, -1: gone. */
static int push(int fd, struct connection *c)
{
    while (c->head_left + c->body_left > 0) {
        int in_head = c->head_left > 0;
        ssize_t n = send(fd, in_head ? c->head + c->head_at : c->body,
                         in_head ? c->head_left : c->body_left,
                         MSG_NOSIGNAL | (in_head && c->body_left > 0 ? MSG_MORE : 0));
        if (n < 0)
            return errno == EAGAIN ? 1 : -1;
        if (in_head) {
            c->head_at += (size_t)n;
            c->head_left -= (size_t)n;
        } else {
            c->body += n;
            c->body_left -= (size_t)n;
        }
    }
    return 0;
}

static void answer(struct connection *c, const char *end)
{
    c->body_left = strncmp(c->in, "GET /big", 8) == 0 ? BIG : SMALL;
    c->body = body;
    c->head_at = 0;
    c->head_left = (size_t)snprintf(c->head, sizeof(c->head),
                                    "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", c->body_left);
    c->in_len -= (size_t)(end - c->in);
    memmove(c->in, end, c->in_len);
}

static int serve(int fd, struct connection *c)
{
    int rc = push(fd, c);
    while (rc == 0) {
        char *end = memmem(c->in, c->in_len, "\r\n\r\n", 4);
        if (end != NULL) {
            answer(c, end + 4);
            rc = push(fd, c);
            continue;
        }
        ssize_t n = recv(fd, c->in + c->in_len, sizeof(c->in) - c->in_len, 0);
        if (n <= 0)
            return n < 0 && errno == EAGAIN ? 0 : -1;
        c->in_len += (size_t)n;
    }
    return rc < 0 ? -1 : 0;
}

static void welcome(int epoll, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), on = 1;
    if (fd < 0)
        return;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = fd};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    connections[fd % CONNECTIONS] = calloc(1, sizeof(struct connection));
    if (fd >= CONNECTIONS || connections[fd] == NULL ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        drop(fd % CONNECTIONS);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    body = malloc(BIG);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (body == NULL || bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(listener, 256) != 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0) {
        perror("app");
        return 1;
    }
    memset(body, 'x', BIG);
    for (;;) {
        struct epoll_event events[64];
        int n = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                welcome(epoll, listener);
            else if (connections[fd] != NULL && serve(fd, connections[fd]) < 0)
                drop(fd);
        }
    }
}
