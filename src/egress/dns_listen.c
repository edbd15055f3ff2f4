/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where questions arrive. Each one is answered by a coroutine of its own, so that a slow server
 * holds up nobody else; how many a sandbox may have, and how fast they may come, is limited before
 * anything is looked at.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "egress/dns_service.h"
#include "loop/net.h"

enum {
    QUESTION_MAX = 1024, /* longer ones are no questions */
    BATCH = 32,          /* datagrams taken before others get their turn */
    TCP_IDLE_MS = 10 * 1000,
    TCP_QUESTIONS_MAX = 100, /* on one connection */
    RETRY_MS = 100,          /* after a failure that may pass */
};

/* Whether the guest may ask now. A question that may not is dropped: asking again is for free. */
static bool may_ask(struct egress *egress, struct guest *guest)
{
    if (guest->questions < EGRESS_GUEST_QUESTIONS_MAX && egress->questions < EGRESS_QUESTIONS_MAX &&
        bucket_take(&guest->question_rate, loop_now(egress->loop), EGRESS_QUESTIONS_PER_S,
                    EGRESS_QUESTIONS_BURST))
        return true;
    const struct log_event event = {.kind = EGRESS_DNS,
                                    .verdict = NET_REFUSED_LIMIT,
                                    .port = 53,
                                    .detail = "too many questions"};
    log_ring_add(&guest->log, &event, wall_ms());
    return false;
}

static void begin_question(struct egress *egress, struct guest *guest)
{
    guest_ref(guest)->questions++;
    egress->questions++;
}

static void end_question(struct egress *egress, struct guest *guest)
{
    egress->questions--;
    guest->questions--;
    guest_unref(guest);
}

/* --- UDP --- */

struct question {
    struct egress *egress;
    struct guest *guest;
    int fd; /* borrowed: where it came in */
    struct sockaddr_storage from;
    socklen_t from_len;
    size_t len;
    char message[QUESTION_MAX];
};

static void question_main(void *arg)
{
    _cleanup_free_ struct question *q = arg;
    _cleanup_buf_ struct buf out = BUF_INIT(DNS_MESSAGE_MAX);
    if (dns_answer_question(q->egress, q->guest, (struct slice){q->message, q->len}, 0, &out))
        sendto(q->fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&q->from,
               q->from_len);
    end_question(q->egress, q->guest);
}

/* false: nothing was there. */
static bool take_datagram(struct egress *egress, int fd, struct question **spare)
{
    struct question *q = *spare;
    struct net_address from;
    if (q == NULL && (q = *spare = calloc(1, sizeof(*q))) == NULL)
        return false;
    q->from_len = sizeof(q->from);
    ssize_t n = recvfrom(fd, q->message, sizeof(q->message), MSG_DONTWAIT | MSG_TRUNC,
                         (struct sockaddr *)&q->from, &q->from_len);
    if (n < 0)
        return errno == EINTR;
    if (n > QUESTION_MAX || !net_address_of_socket((struct sockaddr *)&q->from, &from))
        return true;
    struct guest *guest = guests_at(&egress->guests, &from);
    if (guest == NULL || !may_ask(egress, guest))
        return true;
    q->egress = egress;
    q->guest = guest;
    q->fd = fd;
    q->len = (size_t)n;
    *spare = NULL;
    begin_question(egress, guest);
    if (co_spawn(egress->loop, question_main, q, NULL, NULL) != 0) {
        end_question(egress, guest);
        free(q);
    }
    return true;
}

void dns_serve_udp(struct egress *egress, int fd)
{
    struct question *spare = NULL;
    struct error err;
    while (co_wait_fd(egress->loop, fd, EPOLLIN, -1, &err) == 0)
        for (unsigned i = 0; i < BATCH && take_datagram(egress, fd, &spare); i++)
            ;
    log_error("the resolver stops: %s", err.message);
    free(spare);
    close(fd);
}

/* --- TCP --- */

struct dns_client {
    struct egress *egress;
    struct guest *guest;
    int fd;
};

static int serve_question(struct dns_client *client, struct error *err)
{
    struct loop *loop = client->egress->loop;
    unsigned char size[2];
    char message[QUESTION_MAX];
    _cleanup_buf_ struct buf out = BUF_INIT(DNS_MESSAGE_MAX + 2);
    if (net_read_whole(loop, client->fd, size, sizeof(size), TCP_IDLE_MS, err) != 0)
        return -1;
    size_t len = (size_t)size[0] << 8 | size[1];
    if (len > sizeof(message))
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "a question is too long");
    if (net_read_whole(loop, client->fd, message, len, TCP_IDLE_MS, err) != 0)
        return -1;
    if (client->guest->dropped || !may_ask(client->egress, client->guest))
        return error_set(err, ERROR_LIMIT_EXCEEDED, "too many questions");
    begin_question(client->egress, client->guest);
    bool answered = dns_answer_question(client->egress, client->guest, (struct slice){message, len},
                                        DNS_MESSAGE_MAX, &out);
    end_question(client->egress, client->guest);
    if (!answered)
        return error_set(err, ERROR_INVALID_ARGUMENT, "that is no question");
    const unsigned char out_size[2] = {(unsigned char)(out.len >> 8), (unsigned char)out.len};
    if (net_write(loop, client->fd, out_size, sizeof(out_size), TCP_IDLE_MS, err) != 0)
        return -1;
    return net_write(loop, client->fd, out.data, out.len, TCP_IDLE_MS, err);
}

static void client_main(void *arg)
{
    _cleanup_free_ struct dns_client *client = arg;
    struct egress *egress = client->egress;
    struct flow flow = {.kind = EGRESS_DNS};
    flow_join(&egress->guests, &flow, client->guest, egress->loop);
    for (unsigned i = 0; i < TCP_QUESTIONS_MAX && serve_question(client, NULL) == 0; i++)
        ;
    close(client->fd);
    flow_leave(&egress->guests, &flow);
}

static void take_client(struct egress *egress, int fd)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    struct net_address address;
    struct guest *guest = NULL;
    if (getpeername(fd, (struct sockaddr *)&from, &len) == 0 &&
        net_address_of_socket((struct sockaddr *)&from, &address))
        guest = guests_at(&egress->guests, &address);
    struct dns_client *client = NULL;
    if (guest != NULL && guest_may_connect(&egress->guests, guest, egress->flows_max))
        client = malloc(sizeof(*client));
    if (client == NULL) {
        close(fd);
        return;
    }
    *client = (struct dns_client){.egress = egress, .guest = guest, .fd = fd};
    if (co_spawn(egress->loop, client_main, client, NULL, NULL) != 0) {
        close(fd);
        free(client);
    }
}

void dns_serve_tcp(struct egress *egress, int fd)
{
    struct error err;
    for (;;) {
        int client;
        if (net_accept(egress->loop, fd, &client, &err) == 0)
            take_client(egress, client);
        else if (err.code == ERROR_CANCELLED || co_sleep(egress->loop, RETRY_MS, &err) != 0)
            break;
    }
    close(fd);
}
