/* SPDX-License-Identifier: Apache-2.0 */

/* Asking name servers: a real one, on a socket of the test's own, that lies, is slow, or is short.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "egress/resolver.h"
#include "loop/co.h"
#include "loop/net.h"
#include "loop/task.h"

struct fixture {
    struct loop *loop;
    struct resolver resolver;
    int udp, tcp;
    struct task udp_task, tcp_task;
    unsigned asked; /* over UDP */
    unsigned asked_tcp;
    void (*body)(struct fixture *f);
};

/* What the server does with a question, by its name. */
static void answer(struct fixture *f, struct slice message, bool over_tcp, struct buf *out)
{
    struct dns_query query;
    enum dns_rcode rcode;
    const struct dns_address address = {.family = AF_INET, .bytes = {45, 91, 0, 10}};
    assert_int_equal(dns_query_parse(message, &query, &rcode), DNS_QUERY_GOOD);
    if (strcmp(query.name, "none.example") == 0)
        dns_reply_write(out, &query, DNS_NXDOMAIN, NULL, 0, 0);
    else if (strcmp(query.name, "fails.example") == 0)
        dns_reply_write(out, &query, DNS_SERVFAIL, NULL, 0, 0);
    else if (strcmp(query.name, "long.example") == 0 && !over_tcp)
        dns_reply_truncated(out, &query);
    else
        dns_reply_write(out, &query, DNS_NOERROR, &address, 1, 60);
}

static void send_lies(int fd, const struct buf *truth, const struct sockaddr *to, socklen_t len)
{
    _cleanup_buf_ struct buf lie = BUF_INIT(DNS_MESSAGE_MAX);
    buf_add(&lie, truth->data, truth->len);
    lie.data[0] ^= 1; /* another id */
    lie.data[lie.len - 1] = 66;
    sendto(fd, lie.data, lie.len, 0, to, len);
    lie.data[0] ^= 1;
    lie.data[13] ^= 1; /* another name */
    sendto(fd, lie.data, lie.len, 0, to, len);
    sendto(fd, lie.data, 5, 0, to, len);
}

static void udp_main(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    while (co_wait_fd(f->loop, f->udp, EPOLLIN, -1, &err) == 0) {
        char message[512];
        struct sockaddr_in from;
        socklen_t len = sizeof(from);
        _cleanup_buf_ struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
        ssize_t n = recvfrom(f->udp, message, sizeof(message), MSG_DONTWAIT,
                             (struct sockaddr *)&from, &len);
        if (n < 0)
            continue;
        f->asked++;
        answer(f, (struct slice){message, (size_t)n}, false, &out);
        send_lies(f->udp, &out, (struct sockaddr *)&from, len);
        sendto(f->udp, out.data, out.len, 0, (struct sockaddr *)&from, len);
    }
}

static void tcp_main(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    int client;
    while (net_accept(f->loop, f->tcp, &client, &err) == 0) {
        _cleanup_fd_ int fd = client;
        unsigned char size[2];
        char message[512];
        _cleanup_buf_ struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
        if (net_read_whole(f->loop, fd, size, 2, 10000, &err) != 0)
            continue;
        size_t len = (size_t)size[0] << 8 | size[1];
        assert_true(len <= sizeof(message));
        if (net_read_whole(f->loop, fd, message, len, 10000, &err) != 0)
            continue;
        f->asked_tcp++;
        answer(f, (struct slice){message, len}, true, &out);
        size[0] = (unsigned char)(out.len >> 8);
        size[1] = (unsigned char)out.len;
        net_write(f->loop, fd, size, 2, 10000, &err);
        net_write(f->loop, fd, out.data, out.len, 10000, &err);
    }
}

static void fixture_main(void *arg)
{
    struct fixture *f = arg;
    struct error err;
    assert_int_equal(task_start(f->loop, &f->udp_task, udp_main, f, &err), 0);
    assert_int_equal(task_start(f->loop, &f->tcp_task, tcp_main, f, &err), 0);
    f->body(f);
    task_stop(&f->udp_task);
    task_stop(&f->tcp_task);
    loop_stop(f->loop);
}

/* A TCP and a UDP socket at one port: one that is free for both is tried for. */
static uint16_t listen_both(struct fixture *f)
{
    struct error err;
    for (int tries = 0; tries < 100; tries++) {
        uint16_t port;
        assert_int_equal(net_listen("127.0.0.1:0", 16, &f->tcp, &port, &err), 0);
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        f->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (bind(f->udp, (struct sockaddr *)&at, sizeof(at)) == 0)
            return port;
        close(f->udp);
        close(f->tcp);
    }
    fail();
    return 0;
}

static void run(void (*body)(struct fixture *f))
{
    struct fixture f = {.body = body};
    struct error err;
    char server[32];
    f.loop = loop_new(&err);
    assert_non_null(f.loop);
    f.resolver.loop = f.loop;
    snprintf(server, sizeof(server), "127.0.0.1:%u", listen_both(&f));
    assert_int_equal(resolver_add_server(&f.resolver, server, &err), 0);
    assert_int_equal(co_spawn(f.loop, fixture_main, &f, NULL, &err), 0);
    assert_int_equal(loop_run(f.loop, &err), 0);
    resolver_release(&f.resolver);
    loop_free(f.loop);
    close(f.udp);
    close(f.tcp);
}

static void ask_truth(struct fixture *f)
{
    struct dns_answer got;
    struct error err;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(resolver_addresses(&f->resolver, "www.example", DNS_A, &got, &err), 0);
        assert_int_equal(got.count, 1);
        assert_memory_equal(got.addresses[0].bytes, "\x2d\x5b\x00\x0a", 4);
        assert_true(got.ttl > 0 && got.ttl <= 60);
    }
    assert_int_equal(f->asked, 1);
    assert_true(resolver_knows(&f->resolver, "www.example", DNS_A));
    assert_false(resolver_knows(&f->resolver, "www.example", DNS_AAAA));
}

static void ask_others(struct fixture *f)
{
    struct dns_answer got;
    struct error err;
    assert_int_equal(resolver_addresses(&f->resolver, "none.example", DNS_A, &got, &err), 0);
    assert_int_equal(got.rcode, DNS_NXDOMAIN);
    assert_int_equal(resolver_addresses(&f->resolver, "fails.example", DNS_A, &got, &err), 0);
    assert_int_equal(got.rcode, DNS_SERVFAIL);
    assert_int_equal(resolver_addresses(&f->resolver, "long.example", DNS_A, &got, &err), 0);
    assert_int_equal(got.count, 1);
    assert_int_equal(f->asked_tcp, 1);
    assert_int_equal(resolver_addresses(&f->resolver, "no..name", DNS_A, &got, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
}

/* Many who want the same ask once. */
struct asker {
    struct fixture *f;
    struct task task;
    int rc;
};

static void asker_main(void *arg)
{
    struct asker *asker = arg;
    struct dns_answer got;
    struct error err;
    asker->rc = resolver_addresses(&asker->f->resolver, "www.example", DNS_A, &got, &err);
}

static void ask_together(struct fixture *f)
{
    struct asker askers[20] = {0};
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
        askers[i].f = f;
        askers[i].rc = -1;
        assert_int_equal(task_start(f->loop, &askers[i].task, asker_main, &askers[i], &err), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
        task_join(&askers[i].task);
        assert_int_equal(askers[i].rc, 0);
    }
    assert_int_equal(f->asked, 1);
}

/* The one that asks is gone before the answer is there: another one asks. */
static void ask_and_leave(struct fixture *f)
{
    struct asker askers[3] = {0};
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
        askers[i].f = f;
        askers[i].rc = -1;
        assert_int_equal(task_start(f->loop, &askers[i].task, asker_main, &askers[i], &err), 0);
    }
    task_stop(&askers[0].task);
    task_join(&askers[1].task);
    task_join(&askers[2].task);
    assert_int_equal(askers[0].rc, -1);
    assert_int_equal(askers[1].rc, 0);
    assert_int_equal(askers[2].rc, 0);
}

static void test_truth(void **state)
{
    run(ask_truth);
}
static void test_others(void **state)
{
    run(ask_others);
}
static void test_together(void **state)
{
    run(ask_together);
}
static void test_leave(void **state)
{
    run(ask_and_leave);
}

static void test_servers(void **state)
{
    struct resolver resolver = {0};
    struct error err;
    char text[200];
    assert_int_equal(resolver_add_server(&resolver, "9.9.9.9", &err), 0);
    assert_int_equal(resolver_add_server(&resolver, "[2620:fe::fe]:5353", &err), 0);
    assert_int_equal(resolver_add_server(&resolver, "dns.example", &err), -1);
    assert_int_equal(resolver_add_server(&resolver, "2620:fe::9", &err), 0);
    assert_int_equal(resolver_add_server(&resolver, "9.9.9.9 9.9.9.9", &err), -1);
    assert_int_equal(resolver.servers[1].port, 5353);
    assert_int_equal(resolver.servers[2].port, 53);
    resolver_describe(&resolver, text, sizeof(text));
    assert_string_equal(text, "9.9.9.9, 2620:fe::fe, 2620:fe::9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),    cmocka_unit_test(test_others),
        cmocka_unit_test(test_together), cmocka_unit_test(test_leave),
        cmocka_unit_test(test_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
