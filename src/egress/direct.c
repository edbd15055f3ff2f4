/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A flow is remembered from its first packet until the kernel forgets it, so that the kernel's last
 * word finds its entry, and finds that one that was asked about before needs no other.
 */

#include "egress/direct.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "egress/egress.h"

enum {
    READ_SIZE = 64 * 1024,
    READS_AT_ONCE = 16, /* then others have their turn */
    WARN_EVERY_MS = 60 * 1000,
    COUNT_EVERY_MS = 5, /* so many questions per second, at most */
};

/* ---- flows ---- */

static struct direct_key key_of(const struct kernel_event *event)
{
    struct direct_key key;
    memset(&key, 0, sizeof(key)); /* what is between its members is compared, too */
    key.from = event->from;
    key.to = event->to;
    key.from_port = event->from_port;
    key.to_port = event->to_port;
    key.protocol = event->protocol;
    return key;
}

static struct direct_flow *find(const struct guests *guests, const struct direct_key *key)
{
    struct direct_flow *flow;
    HASH_FIND(hh, guests->directs, key, sizeof(*key), flow);
    return flow;
}

static void end_flow(struct guests *guests, struct direct_flow *flow)
{
    struct guest *guest = flow->guest;
    log_live_end(&flow->live, flow->verdict, wall_ms());
    *(flow->prev != NULL ? &flow->prev->next : &guest->directs) = flow->next;
    if (flow->next != NULL)
        flow->next->prev = flow->prev;
    guest->direct_count--;
    HASH_DEL(guests->directs, flow);
    free(flow);
}

void direct_end_all(struct guests *guests, struct guest *guest)
{
    while (guest->directs != NULL)
        end_flow(guests, guest->directs);
}

static struct direct_flow *begin_flow(struct guests *guests, struct guest *guest,
                                      const struct direct_key *key)
{
    struct direct_flow *flow = calloc(1, sizeof(*flow));
    if (flow == NULL)
        abort();
    flow->key = *key;
    flow->guest = guest;
    flow->next = guest->directs;
    if (guest->directs != NULL)
        guest->directs->prev = flow;
    guest->directs = flow;
    guest->direct_count++;
    HASH_ADD(hh, guests->directs, key, sizeof(flow->key), flow);
    return flow;
}

/* ---- events ---- */

static struct log_event entry_of(const struct guest *guest, const struct kernel_event *event,
                                 enum net_verdict verdict)
{
    return (struct log_event){
        .kind = EGRESS_DIRECT,
        .verdict = verdict,
        .name = told_name(&guest->told, &event->to),
        .address = &event->to,
        .port = event->to_port,
        .protocol = event->protocol,
    };
}

/* The router lets through what its rules do not know to be the machine's own; the machine refuses
 * it then. */
static enum net_verdict verdict_of(struct egress *egress, const struct kernel_event *event)
{
    return reach_is_outside(&egress->reach, &event->to) ? NET_ALLOWED : NET_REFUSED_FORBIDDEN;
}

static void take_connected(struct egress *egress, struct guest *guest,
                           const struct kernel_event *event)
{
    struct guests *guests = &egress->guests;
    const struct direct_key key = key_of(event);
    const struct log_event entry = entry_of(guest, event, verdict_of(egress, event));
    struct direct_flow *flow = find(guests, &key);
    if (flow != NULL) /* its end was lost */
        end_flow(guests, flow);
    if (guest->direct_count >= EGRESS_GUEST_DIRECT_MAX) {
        guest->direct_lost = true;
        log_ring_add(&guest->log, &entry, wall_ms());
        return;
    }
    flow = begin_flow(guests, guest, &key);
    flow->verdict = entry.verdict;
    if (entry.verdict == NET_ALLOWED)
        log_ring_open(&guest->log, &entry, &flow->live, wall_ms());
    else
        log_ring_add(&guest->log, &entry, wall_ms());
}

static void take_closed(struct egress *egress, struct guest *guest,
                        const struct kernel_event *event)
{
    struct direct_queue *queue = &egress->closed;
    const struct direct_key key = key_of(event);
    struct direct_flow *flow = find(&egress->guests, &key);
    if (flow == NULL || flow->live.item == NULL)
        return;
    if (!event->answered) {
        flow->verdict = NET_FAILED_CONNECT;
        log_live_end(&flow->live, flow->verdict, wall_ms());
        return;
    }
    if (queue->count == EGRESS_CLOSED_MAX)
        return; /* the kernel's last word has to do */
    queue->keys[(queue->first + queue->count++) % EGRESS_CLOSED_MAX] = key;
    co_cond_wake(&queue->more);
}

/* One that was connected before this process began, or whose beginning was lost. */
static void take_unknown(struct egress *egress, struct guest *guest,
                         const struct kernel_event *event)
{
    struct log_live live = {0};
    const struct log_event entry = entry_of(guest, event, verdict_of(egress, event));
    if (guest->direct_lost || !event->answered)
        return;
    log_ring_open(&guest->log, &entry, &live, wall_ms());
    live.moved.there = event->out_bytes;
    live.moved.back = event->in_bytes;
    log_live_end(&live, entry.verdict, wall_ms());
}

static void take_ended(struct egress *egress, struct guest *guest, const struct kernel_event *event)
{
    const struct direct_key key = key_of(event);
    struct direct_flow *flow = find(&egress->guests, &key);
    if (flow == NULL) {
        take_unknown(egress, guest, event);
        return;
    }
    flow->live.moved.there = event->out_bytes;
    flow->live.moved.back = event->in_bytes;
    if (!event->answered && flow->verdict == NET_ALLOWED)
        flow->verdict = NET_FAILED_CONNECT;
    end_flow(&egress->guests, flow);
}

/* Why: as the policy says. What it would allow was refused because the kernel's rules are of
 * another one, or of an answer of the resolver that is too old. Without ports, a rule counts that
 * speaks of all of them. */
static enum net_verdict why_refused(struct egress *egress, const struct guest *guest,
                                    const struct kernel_event *event)
{
    bool ports = event->protocol == IPPROTO_TCP || event->protocol == IPPROTO_UDP;
    if (event->limit)
        return NET_REFUSED_LIMIT;
    if (!reach_is_outside(&egress->reach, &event->to))
        return NET_REFUSED_FORBIDDEN;
    enum net_verdict verdict =
        net_policy_address(&guest->policy, &egress->guests.exceptions, &event->to,
                           ports ? (enum net_protocol)event->protocol : NET_TCP,
                           ports && event->to_port != 0 ? event->to_port : 1);
    return verdict == NET_ALLOWED ? NET_REFUSED_CHANGED : verdict;
}

static void take_refused(struct egress *egress, struct guest *guest,
                         const struct kernel_event *event)
{
    const struct log_event entry = entry_of(guest, event, why_refused(egress, guest, event));
    log_ring_add(&guest->log, &entry, wall_ms());
}

static void take_event(void *ctx, const struct kernel_event *event)
{
    static void (*const takers[])(struct egress * egress, struct guest * guest,
                                  const struct kernel_event *event) = {
        [KERNEL_CONNECTED] = take_connected,
        [KERNEL_CLOSED] = take_closed,
        [KERNEL_ENDED] = take_ended,
        [KERNEL_REFUSED] = take_refused,
    };
    struct egress *egress = ctx;
    struct guest *guest = guests_at(&egress->guests, &event->from);
    if (guest != NULL)
        takers[event->kind](egress, guest, event);
}

/* ---- the sockets ---- */

/* Everything that is there, for a while. -1: the socket is of no use any more. */
static int read_events(struct egress *egress, int fd, char *bytes, int64_t *warned_ms)
{
    for (int i = 0; i < READS_AT_ONCE; i++) {
        ssize_t n = recv(fd, bytes, READ_SIZE, MSG_DONTWAIT);
        if (n > 0)
            kernel_events_read((struct slice){bytes, (size_t)n}, take_event, egress);
        else if (n < 0 && errno == EAGAIN)
            return 0;
        else if (n < 0 && errno == ENOBUFS && loop_now(egress->loop) >= *warned_ms) {
            log_warn("more happens in the sandboxes' network than can be written down");
            *warned_ms = loop_now(egress->loop) + WARN_EVERY_MS;
        } else if (n == 0 || (errno != EINTR && errno != ENOBUFS))
            return -1;
    }
    return 0;
}

void direct_serve(struct egress *egress, int fd)
{
    _cleanup_free_ char *bytes = malloc(READ_SIZE);
    struct error err = {0};
    int64_t warned_ms = 0;
    if (bytes == NULL)
        abort();
    while (co_wait_fd(egress->loop, fd, EPOLLIN, -1, &err) == 0)
        if (read_events(egress, fd, bytes, &warned_ms) < 0)
            break;
    log_warn("connections past the proxies are written down no more: %s",
             err.code != ERROR_NONE ? err.message : strerror(errno));
    close(fd);
}

/* ---- counting ---- */

static void count_one(struct egress *egress, const struct direct_key *key)
{
    struct error err;
    struct net_relayed moved;
    bool known = warden_link_count(&egress->warden, key, &moved, &err) == 0;
    struct direct_flow *flow = find(&egress->guests, key);
    if (!known || flow == NULL || flow->live.item == NULL)
        return;
    flow->live.moved = moved;
    log_live_end(&flow->live, flow->verdict, wall_ms());
}

void direct_count(struct egress *egress)
{
    struct direct_queue *queue = &egress->closed;
    struct error err;
    for (;;) {
        while (queue->count == 0)
            if (co_cond_wait(egress->loop, &queue->more, -1, &err) != 0)
                return;
        const struct direct_key key = queue->keys[queue->first];
        queue->first = (queue->first + 1) % EGRESS_CLOSED_MAX;
        queue->count--;
        count_one(egress, &key);
        if (co_sleep(egress->loop, COUNT_EVERY_MS, &err) != 0)
            return;
    }
}
