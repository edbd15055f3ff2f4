/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times a way to the program behind (app.c): straight, through nginx, through the port proxy.
 *
 *     hop ADDRESS PREFIX [FIELD]      "127.0.0.1:80" "/v0/sandbox/b/port/80" "X-Api-Key: …"
 *
 * Driven line by line like the floor (floor/floor.c), with the same answers:
 *
 *     one N     → "one NS" N times: a small GET on a kept connection
 *     crowd N   → "crowd NS" once: N small GETs over 32 connections, for one of them on average
 *     big N     → "big NS" N times: 64 MiB
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CROWD = 32, IN = 256 * 1024 };

static struct sockaddr_in address;
static const char *prefix, *field;
static char in[IN];

struct peer {
    int fd;
    size_t head_len; /* of the answer's head, as far as it has come */
    char head[2048];
    long left; /* of the body; -1: the head is not whole */
};

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static _Noreturn void fail(const char *what)
{
    printf("error %s: %s\n", what, strerror(errno));
    fflush(stdout);
    exit(1);
}

static void open_peer(struct peer *p)
{
    int on = 1;
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0 || connect(p->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        fail("connect");
    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void ask(struct peer *p, const char *path)
{
    char request[1024];
    int n = snprintf(request, sizeof(request), "GET %s%s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n",
                     prefix, path, field, field[0] == '\0' ? "" : "\r\n");
    p->head_len = 0;
    p->left = -1;
    if (send(p->fd, request, (size_t)n, MSG_NOSIGNAL) != n)
        fail("send");
}

static void take_head(struct peer *p, const char **at, size_t *len)
{
    size_t room = sizeof(p->head) - 1 - p->head_len, n = *len < room ? *len : room;
    memcpy(p->head + p->head_len, *at, n);
    p->head[p->head_len + n] = '\0';
    char *end = strstr(p->head, "\r\n\r\n");
    if (end == NULL) {
        p->head_len += n;
        *len = 0;
        return;
    }
    size_t used = (size_t)(end + 4 - p->head) - p->head_len;
    const char *length = strcasestr(p->head, "\r\nContent-Length:");
    if (strncmp(p->head, "HTTP/1.1 200", 12) != 0 || length == NULL || length > end)
        fail(p->head);
    p->left = atol(length + 17);
    *at += used;
    *len -= used;
}

/* One read; true when the answer is whole. */
static bool take(struct peer *p)
{
    ssize_t n = recv(p->fd, in, sizeof(in), 0);
    if (n <= 0)
        fail("recv");
    const char *at = in;
    size_t len = (size_t)n;
    if (p->left < 0)
        take_head(p, &at, &len);
    if (p->left >= 0)
        p->left -= (long)len;
    return p->left == 0;
}

static void each(struct peer *p, const char *name, const char *path, int count)
{
    for (int i = 0; i < count; i++) {
        long long start = now();
        ask(p, path);
        while (!take(p))
            ;
        printf("%s %lld\n", name, now() - start);
    }
}

static void crowd(struct peer *peers, int epoll, int count)
{
    int asked = 0, done = 0;
    long long start = now();
    for (; asked < CROWD && asked < count; asked++)
        ask(&peers[asked], "/small");
    while (done < count) {
        struct epoll_event events[CROWD];
        int n = epoll_wait(epoll, events, CROWD, -1);
        for (int i = 0; i < n; i++) {
            struct peer *p = events[i].data.ptr;
            if (!take(p))
                continue;
            done++;
            if (asked < count) {
                ask(p, "/small");
                asked++;
            }
        }
    }
    printf("crowd %lld\n", (now() - start) / count);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    char *colon = strchr(argv[1], ':');
    *colon = '\0';
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    inet_pton(AF_INET, argv[1], &address.sin_addr);
    prefix = argv[2];
    field = argc > 3 ? argv[3] : "";
    static struct peer peers[CROWD];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < CROWD; i++) {
        open_peer(&peers[i]);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &peers[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, peers[i].fd, &event);
    }
    puts("ready");
    fflush(stdout);
    char line[64], verb[16];
    int count;
    while (fgets(line, sizeof(line), stdin) != NULL && sscanf(line, "%15s %d", verb, &count) == 2) {
        if (strcmp(verb, "crowd") == 0)
            crowd(peers, epoll, count);
        else
            each(&peers[0], verb, strcmp(verb, "big") == 0 ? "/big" : "/small", count);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
