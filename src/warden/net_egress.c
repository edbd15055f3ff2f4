/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the egress process gets: the sockets that sandboxes' questions and connections end at, and
 * that an address which a sandbox was told is let through for a while. It is not trusted with more:
 * what is cut off stays so, whatever it says.
 */

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/net.h"
#include "warden/net_events.h"
#include "warden/net_filter.h"
#include "warden/net_rules.h"
#include "warden/warden.h"

enum { LISTEN_BACKLOG = 512 };

/* Of either family. NULL: nobody has it, or may use it. */
static struct sandbox *find_by_address(struct warden *warden, struct slice address)
{
    const struct router *router = &warden->net.router;
    struct six_address six;
    uint32_t four;
    int64_t index;
    if (address.len == sizeof(six)) {
        memcpy(&six, address.data, sizeof(six));
        index = six_index(router, &six);
    } else {
        memcpy(&four, address.data, sizeof(four));
        index = (int64_t)ntohl(four) - pair_address(router, 0);
    }
    for (struct sandbox *s = warden->sandboxes; s != NULL; s = s->by_id.next)
        if (s->net.index >= 0 && s->net.index == index && s->net.mark != 0 &&
            (address.len == sizeof(four) || s->net.mark & NET_MARK_IPV6))
            return s;
    return NULL;
}

/* A name can have many addresses, and a sandbox can ask for many names: the kernel's tables are
 * everybody's. */
static int count_admission(struct sandbox *sandbox, const struct admission *admission,
                           struct error *err)
{
    bool range = admission_is_range(admission);
    if (budget_take(range ? &sandbox->net.ranges : &sandbox->net.admissions, warden_now_ms(),
                    admission->seconds, range ? NET_RANGES_MAX : NET_ADMISSIONS_MAX))
        return 0;
    return error_set(err, ERROR_LIMIT_EXCEEDED, "%d addresses are admitted already%s",
                     range ? NET_RANGES_MAX : NET_ADMISSIONS_MAX,
                     range ? ", with a range of ports" : "");
}

int net_admit(struct warden *warden, const struct warden_net_admit *request, struct error *err)
{
    bool six = request->sandbox.len == SIX_SIZE;
    if ((!six && request->sandbox.len != sizeof(uint32_t)) ||
        request->address.len != request->sandbox.len ||
        (request->protocol != IPPROTO_TCP && request->protocol != IPPROTO_UDP) ||
        request->port == 0 || request->port > UINT16_MAX || request->last_port > UINT16_MAX ||
        (request->last_port != 0 && request->last_port < request->port) || request->ttl_s == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "not an address to admit");
    struct sandbox *sandbox = warden->net.on ? find_by_address(warden, request->sandbox) : NULL;
    if (sandbox == NULL)
        return error_set(err, ERROR_NOT_RUNNING, "no sandbox has this address");
    if (strcmp(sandbox->id, request->id) != 0)
        return error_set(err, ERROR_NOT_RUNNING, "the address is another sandbox's by now");
    uint64_t ttl = request->ttl_s > NET_ADMIT_TTL_MAX_S ? NET_ADMIT_TTL_MAX_S : request->ttl_s;
    uint64_t last = request->last_port == 0 ? request->port : request->last_port;
    struct admission admission = {.mark = sandbox->net.mark,
                                  .ipv6 = six,
                                  .protocol = (uint8_t)request->protocol,
                                  .first_port = (uint16_t)request->port,
                                  .last_port = (uint16_t)last,
                                  .seconds = (uint32_t)ttl};
    memcpy(&admission.to, request->address.data, request->address.len);
    if (count_admission(sandbox, &admission, err) < 0)
        return -1;
    return filter_admit(&warden->net.router.rules, &admission, err);
}

union socket_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

struct listening {
    union socket_address address;
    int type;
    int fd;
};

static union socket_address gateway_address(const struct router *router, bool six, uint16_t port)
{
    union socket_address address = {.any = {0}};
    if (six) {
        address.six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        memcpy(&address.six.sin6_addr, &router->six.gateway, sizeof(router->six.gateway));
    } else {
        address.four = (struct sockaddr_in){.sin_family = AF_INET,
                                            .sin_port = htons(port),
                                            .sin_addr.s_addr = htonl(router->gateway)};
    }
    return address;
}

static int listen_inside(void *arg, struct error *err)
{
    struct listening *listening = arg;
    const int on = 1, family = listening->address.any.sa_family;
    const socklen_t len =
        family == AF_INET6 ? sizeof(listening->address.six) : sizeof(listening->address.four);
    _cleanup_fd_ int fd = socket(family, listening->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_sys(err, "a socket in the router");
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (listening->type == SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &listening->address.any, len) < 0 ||
        (listening->type == SOCK_STREAM && listen(fd, LISTEN_BACKLOG) < 0))
        return error_sys_as(err, ERROR_UNAVAILABLE, "listening in the router");
    listening->fd = steal_fd(&fd);
    return 0;
}

int net_listen_socket(struct warden *warden, uint64_t which, int *ret_fd, struct error *err)
{
    static const struct {
        int type;
        uint16_t port;
    } rows[] = {
        [NET_LISTEN_DNS_UDP] = {SOCK_DGRAM, NET_PORT_DNS},
        [NET_LISTEN_DNS_TCP] = {SOCK_STREAM, NET_PORT_DNS},
        [NET_LISTEN_HTTP] = {SOCK_STREAM, NET_PORT_HTTP},
        [NET_LISTEN_TLS] = {SOCK_STREAM, NET_PORT_TLS},
    };
    const struct router *router = &warden->net.router;
    bool six = which > NET_LISTEN_SIX && which <= 2 * NET_LISTEN_SIX;
    if (!warden->net.on)
        return error_set(err, ERROR_UNAVAILABLE, "there is no network for sandboxes: %s",
                         warden->net.why);
    if (which == NET_LISTEN_CONNECTIONS || which == NET_LISTEN_REFUSALS)
        return events_open(router, which == NET_LISTEN_REFUSALS, ret_fd, err);
    if (six)
        which -= NET_LISTEN_SIX;
    if (which == 0 || which >= ARRAY_LEN(rows))
        return error_set(err, ERROR_INVALID_ARGUMENT, "there is no such socket");
    if (six && !router->six.on)
        return error_set(err, ERROR_NETWORK_UNAVAILABLE, "there is no IPv6 for sandboxes: %s",
                         router->six.why);
    struct listening listening = {.address = gateway_address(router, six, rows[which].port),
                                  .type = rows[which].type,
                                  .fd = -1};
    if (router_within(router, router->fd, listen_inside, &listening, err) < 0)
        return -1;
    *ret_fd = listening.fd;
    return 0;
}

int net_count(struct warden *warden, const struct warden_net_count *request,
              struct warden_net_counted *ret_counted, struct error *err)
{
    if (!warden->net.on)
        return error_set(err, ERROR_UNAVAILABLE, "there is no network for sandboxes: %s",
                         warden->net.why);
    return events_count(&warden->net.router.rules, request, ret_counted, err);
}
