/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The exchange with name servers. Servers are tried in turn, beginning with the one that answered
 * last. What comes back and is not the answer (a wrong id, another question, bytes that make no
 * sense) is passed over as if it had not come: it may be from somebody who guesses.
 */

#include "egress/resolver_ask.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "egress/reach.h"
#include "loop/co.h"
#include "loop/net.h"

enum {
    TRY_MS = 2000,
    ROUNDS = 2,
    TRIES_MAX = 6,    /* of all servers together */
    STRANGE_MAX = 64, /* datagrams that are no answer, before the server is given up on */
    QUESTION_BYTES_MAX = 512,
};

/* What is asked, and what to do with an answer. */
struct ask {
    struct resolver *resolver;
    const char *name;
    uint16_t type;
    uint16_t id;
    struct buf question;
    /* 0: that is it; -1: it is not. Truncated ones set *ret_truncated. */
    int (*take)(struct ask *ask, struct slice message, bool *ret_truncated, struct error *err);
    struct dns_answer *answer;
    const struct dns_query *query;
    struct buf *out;
};

static int take_addresses(struct ask *ask, struct slice message, bool *ret_truncated,
                          struct error *err)
{
    if (dns_answer_parse(message, ask->id, ask->name, ask->type, ask->answer, err) != 0)
        return -1;
    *ret_truncated = ask->answer->truncated;
    return 0;
}

static int take_records(struct ask *ask, struct slice message, bool *ret_truncated,
                        struct error *err)
{
    uint32_t ttl;
    return dns_answer_copy(message, ask->id, ask->query, ask->out, ret_truncated, &ttl, err);
}

/* --- UDP --- */

static int open_socket(const struct resolver_server *server, struct error *err)
{
    struct sockaddr_storage to;
    socklen_t len = reach_sockaddr(&server->address, server->port, &to);
    _cleanup_fd_ int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) != 0)
        return error_sys_as(err, ERROR_UPSTREAM_FAILED, "a socket to the name server");
    return steal_fd(&fd);
}

static int await_datagram(struct ask *ask, int fd, int64_t deadline, bool *ret_truncated,
                          struct error *err)
{
    struct loop *loop = ask->resolver->loop;
    for (unsigned strange = 0; strange < STRANGE_MAX;) {
        char message[4096];
        ssize_t n = recv(fd, message, sizeof(message), 0);
        if (n >= 0) {
            if (ask->take(ask, (struct slice){message, (size_t)n}, ret_truncated, NULL) == 0)
                return 0;
            strange++;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return error_sys_as(err, ERROR_UPSTREAM_FAILED, "asking the name server");
        int64_t left = deadline - loop_now(loop);
        if (left <= 0 || co_wait_fd(loop, fd, EPOLLIN, left, err) != 0)
            return left <= 0 ? error_set(err, ERROR_TIMEOUT, "the name server does not answer")
                             : -1;
    }
    return error_set(err, ERROR_UPSTREAM_FAILED, "what the name server sends is no answer");
}

static int ask_udp(struct ask *ask, const struct resolver_server *server, bool *ret_truncated,
                   struct error *err)
{
    _cleanup_fd_ int fd = open_socket(server, err);
    if (fd < 0)
        return -1;
    if (send(fd, ask->question.data, ask->question.len, MSG_NOSIGNAL) < 0)
        return error_sys_as(err, ERROR_UPSTREAM_FAILED, "asking the name server");
    return await_datagram(ask, fd, loop_now(ask->resolver->loop) + TRY_MS, ret_truncated, err);
}

/* --- TCP --- */

static int connect_tcp(struct loop *loop, const struct resolver_server *server, struct error *err)
{
    struct sockaddr_storage to;
    socklen_t len = reach_sockaddr(&server->address, server->port, &to);
    int why = 0;
    socklen_t why_len = sizeof(why);
    _cleanup_fd_ int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_sys_as(err, ERROR_UPSTREAM_FAILED, "a socket to the name server");
    if (connect(fd, (struct sockaddr *)&to, len) != 0) {
        if (errno != EINPROGRESS)
            return error_sys_as(err, ERROR_UPSTREAM_FAILED, "connecting to the name server");
        if (co_wait_fd(loop, fd, EPOLLOUT, TRY_MS, err) != 0)
            return -1;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &why_len);
        errno = why;
        if (why != 0)
            return error_sys_as(err, ERROR_UPSTREAM_FAILED, "connecting to the name server");
    }
    return steal_fd(&fd);
}

static int ask_tcp(struct ask *ask, const struct resolver_server *server, struct error *err)
{
    struct loop *loop = ask->resolver->loop;
    const unsigned char size[2] = {(unsigned char)(ask->question.len >> 8),
                                   (unsigned char)ask->question.len};
    unsigned char answer_size[2];
    bool truncated = false;
    _cleanup_fd_ int fd = connect_tcp(loop, server, err);
    if (fd < 0 || net_write(loop, fd, size, sizeof(size), TRY_MS, err) != 0 ||
        net_write(loop, fd, ask->question.data, ask->question.len, TRY_MS, err) != 0 ||
        net_read_whole(loop, fd, answer_size, sizeof(answer_size), TRY_MS, err) != 0)
        return -1;
    size_t len = (size_t)answer_size[0] << 8 | answer_size[1];
    _cleanup_free_ char *message = malloc(len + 1);
    if (message == NULL)
        return error_set(err, ERROR_UPSTREAM_FAILED, "no memory for an answer");
    if (net_read_whole(loop, fd, message, len, TRY_MS, err) != 0 ||
        ask->take(ask, (struct slice){message, len}, &truncated, err) != 0)
        return -1;
    return truncated ? error_set(err, ERROR_UPSTREAM_FAILED, "the answer is too long for DNS") : 0;
}

/* --- both --- */

static int ask_server(struct ask *ask, const struct resolver_server *server, struct error *err)
{
    bool truncated = false;
    if (getrandom(&ask->id, sizeof(ask->id), 0) != sizeof(ask->id))
        return error_sys(err, "random numbers");
    buf_clear(&ask->question);
    if (dns_question_write(&ask->question, ask->id, ask->name, ask->type, err) != 0 ||
        ask_udp(ask, server, &truncated, err) != 0)
        return -1;
    return truncated ? ask_tcp(ask, server, err) : 0;
}

static int ask_all(struct ask *ask, struct error *err)
{
    struct resolver *r = ask->resolver;
    if (r->server_count == 0)
        return error_set(err, ERROR_UPSTREAM_FAILED, "there is no name server to ask");
    size_t first = r->preferred;
    for (size_t i = 0; i < ROUNDS * r->server_count && i < TRIES_MAX; i++) {
        size_t at = (first + i) % r->server_count;
        struct error why = {0};
        if (ask_server(ask, &r->servers[at], &why) == 0) {
            r->preferred = at;
            return 0;
        }
        error_set(err, why.code, "%s", why.message);
        if (why.code == ERROR_CANCELLED || why.code == ERROR_INVALID_ARGUMENT)
            break;
    }
    return -1;
}

static int run(struct ask *ask, struct error *err)
{
    struct resolver *r = ask->resolver;
    if (r->asking >= EGRESS_QUESTIONS_MAX)
        return error_set(err, ERROR_UPSTREAM_FAILED, "too many questions are under way");
    buf_init(&ask->question, QUESTION_BYTES_MAX);
    r->asking++;
    int rc = ask_all(ask, err);
    r->asking--;
    buf_release(&ask->question);
    return rc;
}

int resolver_ask_addresses(struct resolver *resolver, const char *name, uint16_t type,
                           struct dns_answer *ret_answer, struct error *err)
{
    struct ask ask = {.resolver = resolver,
                      .name = name,
                      .type = type,
                      .take = take_addresses,
                      .answer = ret_answer};
    return run(&ask, err);
}

int resolver_ask_records(struct resolver *resolver, const struct dns_query *query, struct buf *out,
                         struct error *err)
{
    struct ask ask = {.resolver = resolver,
                      .name = query->name,
                      .type = query->type,
                      .take = take_records,
                      .query = query,
                      .out = out};
    return run(&ask, err);
}
