/* SPDX-License-Identifier: Apache-2.0 */

/* Connections through this process, from their arrival to their end. */

#include "egress/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "loop/net.h"

enum {
    RETRY_MS = 100, /* after a failure that may pass, as of too many open files */
    TRIES_MAX = 4,  /* addresses of one name */
    /* The kernel's headers that name these cannot be included beside <netinet/in.h>. */
    ORIGINAL_DST = 80, /* SO_ORIGINAL_DST, and IP6T_SO_ORIGINAL_DST */
};

/* --- writing it down --- */

static struct log_event event_of(const struct proxied *p, enum net_verdict verdict)
{
    return (struct log_event){
        .kind = p->flow.kind,
        .verdict = verdict,
        .name = p->flow.name,
        .address = p->flow.address.family != 0 ? &p->flow.address : NULL,
        .port = p->flow.port,
    };
}

void proxy_note(struct proxied *p, enum net_verdict verdict, const char *name, const char *detail)
{
    if (p->noted)
        return;
    struct log_event event = event_of(p, verdict);
    p->noted = true;
    event.detail = detail;
    if (name != NULL)
        event.name = name;
    if (event.address == NULL && p->target.family != 0)
        event.address = &p->target;
    log_ring_add(&p->flow.guest->log, &event, wall_ms());
}

static void note_open(struct proxied *p, const char *name)
{
    struct log_event event = event_of(p, NET_ALLOWED);
    p->noted = true;
    if (name != NULL)
        event.name = name;
    log_ring_open(&p->flow.guest->log, &event, &p->flow.live, wall_ms());
}

/* --- judging --- */

enum net_verdict proxy_judge(struct proxied *p, struct slice name)
{
    struct net_host host;
    struct error err;
    char shown[128];
    size_t len = name.len < sizeof(shown) - 1 ? name.len : sizeof(shown) - 1;
    memcpy(shown, name.data, len);
    shown[len] = '\0';
    if (net_host_parse(name, &host, &err) != 0) {
        proxy_note(p, NET_REFUSED_MALFORMED, shown, err.message);
        return NET_REFUSED_MALFORMED;
    }
    if (host.kind == NET_HOST_ADDRESS) {
        proxy_note(p, NET_REFUSED_NO_NAME, shown, "an address stands where a name should");
        return NET_REFUSED_NO_NAME;
    }
    memcpy(p->flow.name, host.name, sizeof(p->flow.name));
    enum net_verdict verdict = flow_verdict(&p->egress->guests, &p->flow);
    if (verdict != NET_ALLOWED)
        proxy_note(p, verdict, NULL, NULL);
    p->flow.judged = verdict == NET_ALLOWED;
    return verdict;
}

/* --- getting there --- */

/* Tries one address. NET_ALLOWED: p->upstream is connected. */
static enum net_verdict try_address(struct proxied *p, const struct net_address *address,
                                    struct error *err)
{
    p->flow.address = *address;
    enum net_verdict verdict = flow_verdict(&p->egress->guests, &p->flow);
    if (verdict != NET_ALLOWED) {
        error_set(err, ERROR_FORBIDDEN, "%s", net_verdict_text(verdict));
        return verdict;
    }
    if (reach_connect(&p->egress->reach, address, p->flow.port, PROXY_CONNECT_MS, &p->upstream,
                      err) == 0)
        return NET_ALLOWED;
    return err->code == ERROR_FORBIDDEN ? NET_REFUSED_REBINDING : NET_FAILED_CONNECT;
}

/* A verdict that says more than the one before: a refusal counts more than a failure. */
static enum net_verdict worse(enum net_verdict a, enum net_verdict b)
{
    return a == NET_REFUSED_REBINDING || b == NET_FAILED_LOOKUP ? a : b;
}

/* All addresses of one family, until one answers. */
static enum net_verdict try_family(struct proxied *p, uint16_t type, struct error *err)
{
    struct dns_answer answer;
    enum net_verdict verdict = NET_FAILED_LOOKUP;
    if (resolver_addresses(&p->egress->resolver, p->flow.name, type, &answer, err) != 0)
        return NET_FAILED_LOOKUP;
    if (answer.count == 0)
        error_set(err, ERROR_UPSTREAM_FAILED, "it has no address");
    for (size_t i = 0; i < answer.count && i < TRIES_MAX; i++) {
        const struct dns_address *from = &answer.addresses[i];
        struct net_address address =
            net_address_of(from->family == AF_INET ? NET_IPV4 : NET_IPV6, from->bytes);
        enum net_verdict now = try_address(p, &address, err);
        if (now == NET_ALLOWED || err->code == ERROR_CANCELLED)
            return now;
        verdict = worse(verdict, now);
    }
    return verdict;
}

enum net_verdict proxy_connect(struct proxied *p)
{
    struct error err = {0};
    struct guest *guest = p->flow.guest;
    if (!resolver_knows(&p->egress->resolver, p->flow.name, DNS_A) &&
        !bucket_take(&guest->lookup_rate, loop_now(p->egress->loop), EGRESS_LOOKUPS_PER_S,
                     EGRESS_LOOKUPS_BURST)) {
        proxy_note(p, NET_REFUSED_LIMIT, NULL, "too many new names");
        return NET_REFUSED_LIMIT;
    }
    enum net_verdict verdict = try_family(p, DNS_A, &err);
    if (verdict != NET_ALLOWED && guest->policy.ipv6 && err.code != ERROR_CANCELLED)
        verdict = worse(verdict, try_family(p, DNS_AAAA, &err));
    if (verdict == NET_ALLOWED && !p->noted)
        note_open(p, NULL);
    else if (verdict != NET_ALLOWED)
        proxy_note(p, p->flow.closed != NET_ALLOWED ? p->flow.closed : verdict, NULL, err.message);
    return verdict;
}

enum net_verdict proxy_connect_target(struct proxied *p, const char *name)
{
    struct error err = {0};
    p->flow.name[0] = '\0';
    if (p->target.family == 0)
        return NET_REFUSED_NO_NAME;
    p->flow.address = p->target;
    enum net_verdict verdict = flow_verdict(&p->egress->guests, &p->flow);
    if (verdict != NET_ALLOWED) {
        p->flow.address = (struct net_address){0};
        return verdict;
    }
    p->flow.judged = true;
    p->flow.kind = EGRESS_DIRECT;
    verdict = try_address(p, &p->target, &err);
    if (verdict == NET_ALLOWED)
        note_open(p, name);
    else
        proxy_note(p, verdict, name, err.message);
    return verdict;
}

void proxy_relay(struct proxied *p)
{
    struct error err;
    net_relay_counted(p->egress->loop, p->client, p->upstream, PROXY_IDLE_MS, &p->flow.live.moved,
                      &err);
}

/* --- arriving --- */

struct arrival {
    struct proxied p;
    struct guest *guest; /* a reference */
    void (*handle)(struct proxied *p);
};

/* The address that the sandbox meant, from before the kernel turned the connection. */
static void find_target(struct proxied *p)
{
    struct sockaddr_storage to;
    socklen_t len = sizeof(to);
    bool is_v4 = getsockopt(p->client, SOL_IP, ORIGINAL_DST, &to, &len) == 0;
    if (is_v4 || getsockopt(p->client, SOL_IPV6, ORIGINAL_DST, &to, &len) == 0)
        net_address_of_socket((struct sockaddr *)&to, &p->target);
}

static void serve(struct arrival *a)
{
    struct proxied *p = &a->p;
    find_target(p);
    /* A rule about this address: whatever is spoken there is allowed. */
    if (p->flow.guest->policy.mode == NET_ALLOWLIST && p->target.family != 0 &&
        net_policy_address(&p->flow.guest->policy, &p->egress->guests.exceptions, &p->target,
                           NET_TCP, p->flow.port) == NET_ALLOWED) {
        if (proxy_connect_target(p, NULL) == NET_ALLOWED)
            proxy_relay(p);
        return;
    }
    a->handle(p);
}

static void arrival_main(void *arg)
{
    _cleanup_free_ struct arrival *a = arg;
    struct proxied *p = &a->p;
    struct guests *guests = &p->egress->guests;
    flow_join(guests, &p->flow, a->guest, p->egress->loop);
    guest_unref(a->guest);
    serve(a);
    log_live_end(&p->flow.live, p->flow.closed, wall_ms());
    close(p->client);
    cleanup_fd(&p->upstream);
    flow_leave(guests, &p->flow);
}

static struct guest *guest_of(struct egress *egress, int fd)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    struct net_address address;
    if (getpeername(fd, (struct sockaddr *)&from, &len) != 0 ||
        !net_address_of_socket((struct sockaddr *)&from, &address))
        return NULL;
    return guests_at(&egress->guests, &address);
}

static bool may_connect(struct egress *egress, struct guest *guest, enum egress_log_kind kind,
                        uint16_t port)
{
    if (guest_may_connect(&egress->guests, guest, egress->flows_max))
        return true;
    const struct log_event event = {
        .kind = kind, .verdict = NET_REFUSED_LIMIT, .port = port, .detail = "too many connections"};
    log_ring_add(&guest->log, &event, wall_ms());
    return false;
}

static void arrive(struct egress *egress, int fd, enum egress_log_kind kind, uint16_t port,
                   void (*handle)(struct proxied *p))
{
    struct guest *guest = guest_of(egress, fd);
    struct arrival *a = NULL;
    if (guest != NULL && may_connect(egress, guest, kind, port))
        a = calloc(1, sizeof(*a));
    if (a == NULL) {
        close(fd);
        return;
    }
    a->p = (struct proxied){
        .egress = egress, .flow = {.kind = kind, .port = port}, .client = fd, .upstream = -1};
    a->guest = guest_ref(guest);
    a->handle = handle;
    if (co_spawn(egress->loop, arrival_main, a, NULL, NULL) != 0) {
        guest_unref(guest);
        close(fd);
        free(a);
    }
}

void proxy_serve(struct egress *egress, int fd, enum egress_log_kind kind, uint16_t port,
                 void (*handle)(struct proxied *p))
{
    struct error err;
    for (;;) {
        int client;
        if (net_accept(egress->loop, fd, &client, &err) == 0)
            arrive(egress, client, kind, port, handle);
        else if (err.code == ERROR_CANCELLED || co_sleep(egress->loop, RETRY_MS, &err) != 0)
            break;
    }
    log_error("a proxy stops: %s", err.message);
    close(fd);
}
