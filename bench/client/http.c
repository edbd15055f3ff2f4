/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies are taken in whole but only their start is kept, so that a 100 MB download costs the
 * client no more than reading it.
 */
#include "client/http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { TIMEOUT_S = 60 };

int http_open(struct http *http, const char *address, struct error *err)
{
    char name[64];
    const char *colon = strrchr(address, ':');
    if (colon == NULL || (size_t)(colon - address) >= sizeof(name))
        return error_set(err, ERROR_INVALID_ARGUMENT, "not an address: %s", address);
    snprintf(name, sizeof(name), "%.*s", (int)(colon - address), address);
    char *end;
    unsigned long port = strtoul(colon + 1, &end, 10);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (*end != '\0' || port == 0 || port > UINT16_MAX ||
        inet_pton(AF_INET, name, &to.sin_addr) != 1)
        return error_set(err, ERROR_INVALID_ARGUMENT, "not an address: %s", address);

    _cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "connect to %s", address);
    http->fd = steal_fd(&fd);
    http->used = http->filled = 0;
    http->closing = false;
    return 0;
}

void http_close(struct http *http)
{
    if (http->fd >= 0)
        close(http->fd);
    http->fd = -1;
}

static int fill(struct http *http, struct error *err)
{
    if (http->used == http->filled)
        http->used = http->filled = 0;
    if (http->filled == sizeof(http->in))
        return error_set(err, ERROR_HEADERS_TOO_LARGE, "the answer's head is too large");
    ssize_t n = recv(http->fd, http->in + http->filled, sizeof(http->in) - http->filled, 0);
    if (n == 0)
        return error_set(err, ERROR_UNAVAILABLE, "the server closed the connection");
    if (n < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "read the answer");
    http->filled += (size_t)n;
    return 0;
}

/* One line without its CRLF, in place. */
static int take_line(struct http *http, char **ret_line, struct error *err)
{
    for (;;) {
        char *start = http->in + http->used;
        char *end = memmem(start, http->filled - http->used, "\r\n", 2);
        if (end != NULL) {
            *end = '\0';
            http->used = (size_t)(end + 2 - http->in);
            *ret_line = start;
            return 0;
        }
        if (http->used > 0) { /* room for the rest of it */
            memmove(http->in, start, http->filled - http->used);
            http->filled -= http->used;
            http->used = 0;
        }
        if (fill(http, err) < 0)
            return -1;
    }
}

static void keep(struct http *http, const char *data, size_t len)
{
    size_t room = HTTP_KEPT - http->body_len;
    size_t n = len < room ? len : room;
    memcpy(http->body + http->body_len, data, n);
    http->body_len += n;
    http->body_total += len;
}

static int take_body(struct http *http, uint64_t length, struct error *err)
{
    while (length > 0) {
        if (http->used == http->filled && fill(http, err) < 0)
            return -1;
        size_t n = http->filled - http->used;
        if (n > length)
            n = (size_t)length;
        keep(http, http->in + http->used, n);
        http->used += n;
        length -= n;
    }
    return 0;
}

static int take_chunks(struct http *http, struct error *err)
{
    for (;;) {
        char *line;
        if (take_line(http, &line, err) < 0)
            return -1;
        uint64_t size = strtoull(line, NULL, 16);
        if (size > 0 && take_body(http, size, err) < 0)
            return -1;
        if (take_line(http, &line, err) < 0) /* after the data, or instead of trailers */
            return -1;
        if (size == 0)
            return 0;
    }
}

static int take_answer(struct http *http, struct error *err)
{
    char *line;
    uint64_t length = 0;
    bool chunked = false;
    http->body_len = 0;
    http->body_total = 0;
    if (take_line(http, &line, err) < 0)
        return -1;
    if (sscanf(line, "HTTP/1.1 %d", &http->status) != 1)
        return error_set(err, ERROR_INVALID_HTTP, "not a status line: %s", line);
    for (;;) {
        if (take_line(http, &line, err) < 0)
            return -1;
        if (*line == '\0')
            break;
        if (strncasecmp(line, "Content-Length:", 15) == 0)
            length = strtoull(line + 15, NULL, 10);
        else if (strncasecmp(line, "Transfer-Encoding:", 18) == 0)
            chunked = strcasestr(line, "chunked") != NULL;
        else if (strncasecmp(line, "Connection:", 11) == 0)
            http->closing = strcasestr(line, "close") != NULL;
    }
    int r = chunked ? take_chunks(http, err) : take_body(http, length, err);
    http->body[http->body_len] = '\0';
    return r;
}

static int send_all(int fd, struct iovec *iov, int count, struct error *err)
{
    while (count > 0) {
        struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)count};
        ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL);
        if (n < 0)
            return error_sys_as(err, ERROR_UNAVAILABLE, "send the request");
        while (count > 0 && (size_t)n >= iov->iov_len) {
            n -= (ssize_t)iov->iov_len;
            iov++;
            count--;
        }
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
        }
    }
    return 0;
}

int http_call(struct http *http, const struct http_request *request, struct error *err)
{
    char head[2048];
    int len = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: %s\r\n", request->method,
                       request->path, http->host);
#define ADD(...) (len += snprintf(head + len, sizeof(head) - (size_t)len, __VA_ARGS__))
    if (http->key != NULL)
        ADD("Authorization: Bearer %s\r\n", http->key);
    if (request->accept != NULL)
        ADD("Accept: %s\r\n", request->accept);
    if (request->body != NULL)
        ADD("Content-Type: %s\r\nContent-Length: %zu\r\n",
            request->type != NULL ? request->type : "application/json", request->body_len);
    ADD("\r\n");
#undef ADD
    struct iovec iov[2] = {{head, (size_t)len}, {(void *)request->body, request->body_len}};
    if (send_all(http->fd, iov, request->body_len > 0 ? 2 : 1, err) < 0)
        return -1;
    return take_answer(http, err);
}

int http_expect(struct http *http, const struct http_request *request, int status,
                struct error *err)
{
    if (http_call(http, request, err) < 0)
        return error_prefix(err, "%s %s", request->method, request->path);
    if (http->status != status)
        return error_set(err, ERROR_INTERNAL, "%s %s: %d, not %d: %.200s", request->method,
                         request->path, http->status, status, http->body);
    return 0;
}
