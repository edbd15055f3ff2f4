/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The machine has to forward IPv6 for this, and turning that on is not as harmless as with IPv4: a
 * kernel that forwards forgets the routes that it has learned from router advertisements, and with
 * them often its only way out. So it is turned on when the first sandbox asks, and not at all where
 * that would happen (six_hindered() says what to do then).
 */

#include "warden/net_six.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/files.h"
#include "warden/net_link.h"
#include "warden/net_pair.h"
#include "warden/net_router.h"

#define CONF       "/proc/sys/net/ipv6/conf"
#define FORWARDING CONF "/all/forwarding"

enum { LO = 1, ADDRESS_BITS = 128, UPLINK_BITS = 126, KNOB_PATH = 96, ID_BYTES = 5 };

/* ---- addresses ---- */

int six_parse_range(const char *text, struct six_address *ret_range, unsigned *ret_bits,
                    struct error *err)
{
    char address[SIX_TEXT];
    struct six_address range;
    unsigned bits;
    int end = 0;
    if (sscanf(text, "%45[0-9a-fA-F:]/%u%n", address, &bits, &end) != 2 || text[end] != '\0' ||
        inet_pton(AF_INET6, address, range.bytes) != 1 || bits < 8 || bits > 96)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.60s\" is not a range for sandboxes' IPv6 addresses, such as "
                         "fd12:3456:789a::/64",
                         text);
    for (unsigned bit = bits; bit < ADDRESS_BITS; bit++)
        if (range.bytes[bit / 8] & 0x80 >> bit % 8)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%.60s has bits set behind the prefix",
                             text);
    if ((range.bytes[0] & 0xfe) != 0xfc)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%.60s is not private: sandboxes' IPv6 addresses come out of fc00::/7",
                         text);
    *ret_range = range;
    *ret_bits = bits;
    return 0;
}

/* A prefix of its own for every server, as RFC 4193 wants it: 40 bits that nobody else has. */
static struct six_address own_prefix(const char *instance)
{
    struct six_address prefix = {{0xfd}};
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *c = instance; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    for (int i = 0; i < ID_BYTES; i++)
        prefix.bytes[1 + i] = (unsigned char)(hash >> 8 * i);
    return prefix;
}

static struct six_address numbered(struct six_address prefix, uint32_t number)
{
    uint32_t swapped = htonl(number);
    memcpy(prefix.bytes + SIX_SIZE - sizeof(swapped), &swapped, sizeof(swapped));
    return prefix;
}

/* The last number of an address, as IPv4 has it: 1 is the gateway, 2 the first sandbox. */
enum { GATEWAY_NUMBER = 1, FIRST_NUMBER = 2 };

static int choose_addresses(struct six *six, const char *range, const char *instance,
                            struct error *err)
{
    struct six_address prefix = own_prefix(instance), cable = prefix;
    six->range = prefix;
    six->range_bits = 64;
    if (range != NULL && six_parse_range(range, &six->range, &six->range_bits, err) < 0)
        return -1;
    six->gateway = numbered(six->range, GATEWAY_NUMBER);
    cable.bytes[6] = 0xce; /* beside the range, whichever that is */
    cable.bytes[7] = 0x11;
    six->uplink_far = numbered(cable, 1);
    six->uplink_near = numbered(cable, 2);
    return 0;
}

struct six_address six_address(const struct router *router, int index)
{
    return numbered(router->six.range, FIRST_NUMBER + (uint32_t)index);
}

int six_index(const struct router *router, const struct six_address *address)
{
    uint32_t number;
    memcpy(&number, address->bytes + SIX_SIZE - sizeof(number), sizeof(number));
    number = ntohl(number);
    const struct six_address same = numbered(router->six.range, number);
    if (memcmp(&same, address, sizeof(same)) != 0 || number < FIRST_NUMBER ||
        number - FIRST_NUMBER >= pair_count_max(router))
        return -1;
    return (int)(number - FIRST_NUMBER);
}

void six_text(const struct six_address *address, char out[SIX_TEXT])
{
    inet_ntop(AF_INET6, address->bytes, out, SIX_TEXT);
}

/* ---- interfaces ---- */

static int set_knob(const char *interface, const char *knob, const char *value, struct error *err)
{
    char path[KNOB_PATH];
    snprintf(path, sizeof(path), CONF "/%.15s/%s", interface, knob);
    return file_write_at(AT_FDCWD, path, value, err);
}

/* An interface of ours, in the namespace that the caller is in. */
static int set_on(const char *interface, bool on, struct error *err)
{
    if (!on)
        return set_knob(interface, "disable_ipv6", "1", err);
    if (set_knob(interface, "addr_gen_mode", "1", err) < 0 || /* no link-local address */
        set_knob(interface, "accept_ra", "0", err) < 0)
        return -1;
    return set_knob(interface, "disable_ipv6", "0", err);
}

struct end {
    struct netlink *route; /* NULL: one is opened */
    const char *interface;
    struct net_way6 way;
};

/* One end of a cable, in its namespace. */
static int furnish(void *arg, struct error *err)
{
    const struct end *end = arg;
    struct netlink route = NETLINK_INIT;
    if (set_on(end->interface, true, err) < 0)
        return -1;
    if (end->route != NULL)
        return link_address6(end->route, &end->way, err);
    if (nl_open(NETLINK_ROUTE, &route, err) < 0)
        return -1;
    int r = link_address6(&route, &end->way, err);
    nl_close(&route);
    return r;
}

static int strip(void *arg, struct error *err)
{
    return set_on(arg, false, err);
}

int six_enable(struct router *router, int index, int network_namespace, struct error *err)
{
    const struct six *six = &router->six;
    const struct six_address own = six_address(router, index);
    char name[NET_NAME_SIZE];
    if (!six->on)
        return error_set(err, ERROR_UNAVAILABLE, "there is no IPv6 for sandboxes: %s", six->why);
    pair_name(index, name);
    struct end near = {.route = &router->route,
                       .interface = name,
                       .way = {.ifindex = pair_ifindex(index),
                               .neighbour = own.bytes,
                               .to = own.bytes,
                               .to_bits = ADDRESS_BITS}};
    struct end far = {.interface = "eth0",
                      .way = {.ifindex = PAIR_ETH0,
                              .own = own.bytes,
                              .own_bits = ADDRESS_BITS,
                              .neighbour = six->gateway.bytes,
                              .via = six->gateway.bytes}};
    pair_mac(index, PAIR_FAR, near.way.mac);
    pair_mac(index, PAIR_NEAR, far.way.mac);
    if (router_within(router, router->fd, furnish, &near, err) < 0 ||
        router_within(router, network_namespace, furnish, &far, err) < 0)
        return error_prefix(err, "IPv6 of %s", name);
    return six_forward(router, err);
}

void six_disable(struct router *router, int index, int network_namespace)
{
    char name[NET_NAME_SIZE], inside[] = "eth0";
    struct error err;
    pair_name(index, name);
    if (router_within(router, network_namespace, strip, inside, &err) < 0 ||
        router_within(router, router->fd, strip, name, &err) < 0)
        log_warn("taking IPv6 from %s: %s", name, err.message); /* its rules let nothing pass */
}

/* ---- the router ---- */

static int open_inside(void *arg, struct error *err)
{
    struct router *router = arg;
    const struct six *six = &router->six;
    const struct net_way6 gateway = {
        .ifindex = LO, .own = six->gateway.bytes, .own_bits = ADDRESS_BITS};
    struct end cable = {.route = &router->route,
                        .interface = "up0",
                        .way = {.ifindex = link_find(&router->route, "up0"),
                                .own = six->uplink_near.bytes,
                                .own_bits = UPLINK_BITS,
                                .neighbour = six->uplink_far.bytes,
                                .via = six->uplink_far.bytes}};
    router_cable_mac(ROUTER_OUTSIDE, cable.way.mac);
    if (file_write_at(AT_FDCWD, FORWARDING, "1", err) < 0 ||
        link_address6(&router->route, &gateway, err) < 0)
        return -1;
    return furnish(&cable, err);
}

static int open_outside(const struct router *router, struct error *err)
{
    struct end cable = {.interface = router->uplink,
                        .way = {.ifindex = (int)if_nametoindex(router->uplink),
                                .own = router->six.uplink_far.bytes,
                                .own_bits = UPLINK_BITS,
                                .neighbour = router->six.uplink_near.bytes}};
    router_cable_mac(ROUTER_INSIDE, cable.way.mac);
    return furnish(&cable, err);
}

void six_open(struct router *router, const char *range, const char *instance)
{
    struct six *six = &router->six;
    struct error err = {0};
    int r;
    if (access(CONF, F_OK) < 0)
        r = error_set(&err, ERROR_UNAVAILABLE, "this kernel has no IPv6");
    else if ((r = choose_addresses(six, range, instance, &err)) == 0 &&
             (r = router_within(router, router->fd, open_inside, router, &err)) == 0)
        r = open_outside(router, &err);
    six->on = r == 0;
    if (six->on)
        return;
    snprintf(six->why, sizeof(six->why), "%s", err.message);
    log_info("sandboxes have no IPv6: %s", six->why);
}

/* ---- the machine ---- */

static bool forwards(void)
{
    char value[8] = "";
    struct error err;
    return file_read_at(AT_FDCWD, FORWARDING, value, sizeof(value), &err) == 0 && value[0] == '1';
}

/* Whether an interface gives its learned routes up once the machine forwards. */
static bool listens_to_routers(int ifindex)
{
    char name[IF_NAMESIZE], path[KNOB_PATH], value[8] = "";
    struct error err;
    if (if_indextoname((unsigned)ifindex, name) == NULL)
        return false;
    snprintf(path, sizeof(path), CONF "/%s/accept_ra", name);
    return file_read_at(AT_FDCWD, path, value, sizeof(value), &err) == 0 && value[0] == '1';
}

static void see_learned(int ifindex, void *arg)
{
    int *found = arg;
    if (*found == 0 && listens_to_routers(ifindex))
        *found = ifindex;
}

/* Whether forwarding is off and has to stay so. */
static bool must_not_forward(struct netlink *machine, char *why, size_t size)
{
    int found = 0;
    char name[IF_NAMESIZE] = "";
    struct error err;
    if (forwards())
        return false;
    if (access(FORWARDING, W_OK) < 0) {
        snprintf(why, size,
                 "IPv6 is not forwarded here, and that cannot be changed from here: "
                 "set net.ipv6.conf.all.forwarding=1");
        return true;
    }
    if (link_each_learned_route6(machine, see_learned, &found, &err) < 0 || found == 0)
        return false;
    if_indextoname((unsigned)found, name);
    snprintf(why, size,
             "this machine does not forward IPv6, and would lose the routes that %s has from "
             "router advertisements if it did: set net.ipv6.conf.%s.accept_ra=2 and then "
             "net.ipv6.conf.all.forwarding=1",
             name, name);
    return true;
}

int six_forward(const struct router *router, struct error *err)
{
    char why[SIX_WHY_MAX];
    struct netlink machine = NETLINK_INIT;
    if (forwards())
        return 0;
    if (nl_open(NETLINK_ROUTE, &machine, err) < 0)
        return -1;
    bool hindered = must_not_forward(&machine, why, sizeof(why));
    nl_close(&machine);
    if (hindered)
        return error_set(err, ERROR_UNAVAILABLE, "%s", why);
    if (file_write_at(AT_FDCWD, FORWARDING, "1", err) < 0)
        return error_prefix(err, "turning the forwarding of IPv6 on");
    log_info("IPv6 is forwarded by this machine from now on (net.ipv6.conf.all.forwarding), for %s",
             router->uplink);
    return 0;
}

bool six_hindered(const struct router *router, char *why, size_t size)
{
    static const struct six_address public = {{0x20}}; /* 2000::, of the range that is in use */
    struct netlink machine = NETLINK_INIT;
    struct error err;
    if (!router->six.on) {
        snprintf(why, size, "%s", router->six.why);
        return true;
    }
    if (nl_open(NETLINK_ROUTE, &machine, &err) < 0) {
        snprintf(why, size, "%s", err.message);
        return true;
    }
    bool hindered = !link_has_route6(&machine, public.bytes);
    if (hindered)
        snprintf(why, size, "this machine has no IPv6 route to the Internet");
    else
        hindered = must_not_forward(&machine, why, size);
    nl_close(&machine);
    return hindered;
}
