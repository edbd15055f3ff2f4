/* SPDX-License-Identifier: Apache-2.0 */

/* One connection, one request at a time. A lost one is made again for the next request. */

#include "egress/warden_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "loop/net.h"

enum { ASK_TIMEOUT_MS = 20 * 1000, PAYLOAD_MAX = 4096 };

void warden_link_release(struct warden_link *link)
{
    cleanup_fd(&link->fd);
    link->fd = -1;
}

/* A request, and what is to be made of its answer. */
struct question {
    const struct wire_schema *schema;
    const void *request;
    const struct wire_schema *answer;
    void *ret_answer; /* numbers only: what the answer's texts are in is gone afterwards */
    int fd;           /* that came with it; -1: none */
};

static int read_answer(struct warden_link *link, uint32_t id, struct question *question,
                       struct error *err)
{
    unsigned char head[FRAME_HEADER_SIZE];
    char payload[PAYLOAD_MAX];
    struct frame_header header;
    if (net_read_with_fd(link->loop, link->fd, head, sizeof(head), ASK_TIMEOUT_MS, &question->fd,
                         err) != 0 ||
        frame_header_decode(head, &header, err) != 0)
        return -1;
    if (header.id != id || header.length > sizeof(payload))
        return error_set(err, ERROR_UNAVAILABLE, "the warden's answer makes no sense");
    if (net_read_with_fd(link->loop, link->fd, payload, header.length, ASK_TIMEOUT_MS,
                         &question->fd, err) != 0)
        return -1;
    if (header.type == WIRE_ERROR)
        return wire_take_error((struct slice){payload, header.length}, err);
    if (header.type != question->answer->type)
        return error_set(err, ERROR_UNAVAILABLE, "the warden's answer makes no sense");
    return question->ret_answer == NULL
               ? 0
               : wire_decode(question->answer, (struct slice){payload, header.length},
                             question->ret_answer, err);
}

static int exchange(struct warden_link *link, struct question *question, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1024);
    char address[300];
    snprintf(address, sizeof(address), "unix:%s", link->path);
    if (link->fd < 0 && net_connect(link->loop, address, ASK_TIMEOUT_MS, &link->fd, err) != 0)
        return -1;
    if (++link->last_id == 0)
        link->last_id = 1;
    wire_encode(&out, question->schema, link->last_id, question->request);
    if (net_write(link->loop, link->fd, out.data, out.len, ASK_TIMEOUT_MS, err) != 0)
        return -1;
    return read_answer(link, link->last_id, question, err);
}

/* Whether the connection is of no use any more: it is lost, or half an answer is on it. */
static bool is_lost(enum error_code code)
{
    return code == ERROR_UNAVAILABLE || code == ERROR_TIMEOUT || code == ERROR_CANCELLED;
}

/* A warden that was started again has closed its old connections: one is worth a second try. */
static int ask(struct warden_link *link, struct question *question, struct error *err)
{
    struct error why = {0};
    int rc = 0;
    while (rc == 0 && link->busy)
        rc = co_cond_wait(link->loop, &link->free, ASK_TIMEOUT_MS, err);
    if (rc != 0)
        return -1;
    link->busy = true;
    for (unsigned tries = 0; tries < 2; tries++) {
        bool old = link->fd >= 0;
        rc = exchange(link, question, &why);
        if (rc != 0 && is_lost(why.code))
            warden_link_release(link);
        if (rc == 0 || !old || why.code != ERROR_UNAVAILABLE)
            break;
    }
    link->busy = false;
    co_cond_wake(&link->free);
    return rc != 0 ? error_set(err, why.code, "%s", why.message) : 0;
}

int warden_link_listen(struct warden_link *link, enum net_listener which, int *ret_fd,
                       struct error *err)
{
    const struct warden_net_listen request = {.which = which};
    struct question question = {.schema = &warden_net_listen_schema,
                                .request = &request,
                                .answer = &wire_ok_schema,
                                .fd = -1};
    int rc = ask(link, &question, err);
    if (rc == 0 && question.fd < 0)
        return error_set(err, ERROR_UNAVAILABLE, "the warden sent no descriptor");
    if (rc == 0)
        *ret_fd = steal_fd(&question.fd);
    cleanup_fd(&question.fd);
    return rc;
}

static struct slice bytes_of(const struct net_address *address)
{
    return (struct slice){(const char *)address->bytes, address->family == NET_IPV4 ? 4 : 16};
}

int warden_link_admit(struct warden_link *link, const char *id, const struct net_address *guest,
                      const struct net_address *address, const struct net_admission *ports,
                      uint32_t ttl_s, struct error *err)
{
    const struct warden_net_admit request = {
        .id = id,
        .sandbox = bytes_of(guest),
        .address = bytes_of(address),
        .protocol = ports->protocol,
        .port = ports->low,
        .last_port = ports->high,
        .ttl_s = ttl_s,
    };
    struct question question = {.schema = &warden_net_admit_schema,
                                .request = &request,
                                .answer = &wire_ok_schema,
                                .fd = -1};
    int rc = ask(link, &question, err);
    cleanup_fd(&question.fd);
    return rc;
}

int warden_link_count(struct warden_link *link, const struct direct_key *key,
                      struct net_relayed *ret_moved, struct error *err)
{
    const struct warden_net_count request = {
        .sandbox = bytes_of(&key->from),
        .address = bytes_of(&key->to),
        .protocol = key->protocol,
        .sandbox_port = key->from_port,
        .port = key->to_port,
    };
    struct warden_net_counted counted = {0};
    struct question question = {.schema = &warden_net_count_schema,
                                .request = &request,
                                .answer = &warden_net_counted_schema,
                                .ret_answer = &counted,
                                .fd = -1};
    int rc = ask(link, &question, err);
    cleanup_fd(&question.fd);
    if (rc == 0)
        *ret_moved = (struct net_relayed){.there = counted.out_bytes, .back = counted.in_bytes};
    return rc;
}
