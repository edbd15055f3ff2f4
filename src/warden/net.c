/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Order matters in two places. A sandbox's record names its interface before there are rules for
 * it, and is removed after they are gone: whatever the kernel holds, the next warden finds it. And
 * the rules of a new policy come before its bandwidth: what is refused is refused first.
 */

#include "warden/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/net_filter.h"
#include "warden/net_rules.h"
#include "warden/warden.h"

#define KIB           (UINT64_C(1) << 10)
#define TIB           (UINT64_C(1) << 40)
#define NETWORK_FLAGS ((uint64_t)(PLAN_NETWORK_PROXIED | PLAN_NETWORK_IPV6))

enum { TAKE_TRIES = 64 };

/* ---- what is asked for ---- */

struct net_wish net_wish_of_plan(const struct plan *plan)
{
    return (struct net_wish){.mode = plan->network,
                             .flags = plan->network_flags,
                             .in_bytes = plan->network_in_bytes,
                             .out_bytes = plan->network_out_bytes,
                             .rules = plan->network_rules};
}

static bool rule_valid(const struct plan_net_rule *rule)
{
    unsigned most = rule->family == 4 ? 32 : 128;
    if ((rule->family != 4 && rule->family != 6) || rule->bits > most ||
        rule->verdict > PLAN_RULE_ALLOW)
        return false;
    for (unsigned bit = rule->bits; bit < 8 * sizeof(rule->address); bit++)
        if (rule->address[bit / 8] & 0x80 >> bit % 8)
            return false;
    return (rule->protocol == 0 || rule->protocol == IPPROTO_TCP ||
            rule->protocol == IPPROTO_UDP) &&
           rule->first_port <= rule->last_port;
}

static bool rate_valid(uint64_t rate)
{
    return rate == 0 || (rate >= KIB && rate <= TIB);
}

int net_wish_check(const struct net_wish *wish, struct error *err)
{
    struct plan_net_rule rule;
    if (wish->mode > PLAN_NETWORK_FULL || wish->flags & ~NETWORK_FLAGS)
        return error_set(err, ERROR_INVALID_ARGUMENT, "there is no such mode of network");
    if (!rate_valid(wish->in_bytes) || !rate_valid(wish->out_bytes))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "a bandwidth is between %" PRIu64 " and %" PRIu64 " bytes per second", KIB,
                         TIB);
    if (wish->rules.len % sizeof(rule) != 0 || wish->rules.len / sizeof(rule) > PLAN_NET_RULES_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "not a list of rules on addresses");
    for (size_t at = 0; at < wish->rules.len; at += sizeof(rule)) {
        memcpy(&rule, wish->rules.data + at, sizeof(rule));
        if (!rule_valid(&rule))
            return error_set(err, ERROR_INVALID_ARGUMENT, "rule %zu on addresses is no rule",
                             at / sizeof(rule));
    }
    return 0;
}

static bool is_taken(const struct warden *warden, uint32_t generation)
{
    for (const struct sandbox *s = warden->sandboxes; s != NULL; s = s->by_id.next)
        if (s->net.mark >> NET_GENERATION_SHIFT == generation)
            return true;
    return false;
}

/* Two with the same one would have each other's admissions. */
static void next_generation(struct warden *warden)
{
    struct net *net = &warden->net;
    do {
        net->generation = (net->generation + 1) & (NET_MARK_GENERATION >> NET_GENERATION_SHIFT);
        net->recurring |= net->generation == 0;
    } while (net->generation == 0 || (net->recurring && is_taken(warden, net->generation)));
}

static uint32_t make_mark(struct warden *warden, const struct net_wish *wish)
{
    const struct net *net = &warden->net;
    if (wish->mode == PLAN_NETWORK_NONE)
        return 0;
    next_generation(warden);
    bool proxied = wish->mode == PLAN_NETWORK_ALLOWLIST || wish->flags & PLAN_NETWORK_PROXIED;
    bool six = wish->flags & PLAN_NETWORK_IPV6;
    return (uint32_t)wish->mode | (proxied ? NET_MARK_PROXIED : 0) | (six ? NET_MARK_IPV6 : 0) |
           net->generation << NET_GENERATION_SHIFT;
}

/* ---- the machine's part ---- */

static void give_up(struct net *net, const char *why)
{
    net->on = false;
    snprintf(net->why, sizeof(net->why), "%s", why);
    router_close(&net->router);
}

void net_mount(struct net *net, const char *data, const struct net_options *options)
{
    struct error err;
    *net = (struct net)NET_INIT;
    if (!options->on) {
        snprintf(net->why, sizeof(net->why), "the server was started without networks");
        return;
    }
    if (router_mount(&net->router, data, &net->fresh, &err) < 0)
        give_up(net, err.message);
}

void net_open(struct net *net, const char *data, const char *instance,
              const struct net_options *options)
{
    struct error err;
    if (net->router.fd < 0)
        return;
    /* Numbers that nobody remembers from an earlier warden. */
    if (getrandom(&net->generation, sizeof(net->generation), 0) != sizeof(net->generation))
        net->generation = (uint32_t)warden_now_ms();
    net->generation >>= NET_GENERATION_SHIFT;
    if (router_open(&net->router, &options->router, instance, net->fresh, &err) < 0) {
        give_up(net, err.message);
        return;
    }
    net->recurring = !net->fresh;
    net->cursor = (int)(net->generation % pair_count_max(&net->router));
    net->on = true;
}

enum { STRANGERS_MAX = 1024, GENERATIONS_MAX = 64 * 1024 };

struct strangers {
    const struct warden *warden;
    int indexes[STRANGERS_MAX];
    size_t count;
};

static void note_stranger(const char *name, int ifindex, void *arg)
{
    struct strangers *strangers = arg;
    int index = pair_index(name);
    if (index < 0 || strangers->count == STRANGERS_MAX)
        return;
    for (const struct sandbox *s = strangers->warden->sandboxes; s != NULL; s = s->by_id.next)
        if (s->net.index == index)
            return;
    strangers->indexes[strangers->count++] = index;
}

static void note_generation(uint32_t generation, void *arg)
{
    buf_add(arg, (const char *)&generation, sizeof(generation));
}

/* A warden that ended between writing a change down and making it leaves a generation behind that
 * no record knows, and with it connections that no policy would end. */
static void clear_generations(struct warden *warden)
{
    struct netlink *rules = &warden->net.router.rules;
    _cleanup_buf_ struct buf found = BUF_INIT(GENERATIONS_MAX * sizeof(uint32_t));
    struct error err;
    if (filter_each_generation(rules, note_generation, &found, &err) < 0)
        log_warn("%s", err.message);
    for (size_t at = 0; at + sizeof(uint32_t) <= found.len; at += sizeof(uint32_t)) {
        uint32_t mark;
        memcpy(&mark, found.data + at, sizeof(mark));
        if (!is_taken(warden, mark >> NET_GENERATION_SHIFT) &&
            filter_forget_generation(rules, mark, &err) < 0)
            log_warn("%s", err.message);
    }
}

/* Those that an earlier warden had ready vanish with it; others should not be there at all. */
void net_clear_strangers(struct warden *warden)
{
    struct strangers strangers = {.warden = warden};
    struct netlink *route = &warden->net.router.route;
    struct error err;
    if (!warden->net.on || warden->net.fresh)
        return;
    clear_generations(warden);
    if (link_each(route, note_stranger, &strangers, &err) < 0)
        log_warn("%s", err.message);
    for (size_t i = 0; i < strangers.count; i++) {
        char name[NET_NAME_SIZE];
        pair_name(strangers.indexes[i], name);
        if (link_remove(route, name, &err) < 0)
            log_warn("%s", err.message);
    }
}

void net_close(struct net *net)
{
    stock_close(&net->stock);
    router_close(&net->router);
    net->on = false;
}

void net_remove(const char *data, const char *instance)
{
    router_remove(data, instance);
}

/* ---- a sandbox's part ---- */

static int next_index(void *arg)
{
    struct net *net = arg;
    int index = net->cursor;
    net->cursor = (int)((unsigned)(index + 1) % pair_count_max(&net->router));
    return index;
}

static struct filter_entry entry_of(const struct warden *warden, const struct sandbox_net *net,
                                    char name[NET_NAME_SIZE])
{
    pair_name(net->index, name);
    return (struct filter_entry){.interface = name,
                                 .address = pair_address(&warden->net.router, net->index),
                                 .six = six_address(&warden->net.router, net->index),
                                 .mark = net->mark,
                                 .ruled = net->ruled};
}

static int take_pair(struct warden *warden, struct net_pair *ret_pair, struct error *err)
{
    struct net *net = &warden->net;
    if (stock_take(&net->stock, ret_pair))
        return 0;
    for (int i = 0; i < TAKE_TRIES; i++) {
        if (pair_make(&net->router, next_index(net), ret_pair, err) == 0)
            return 0;
        if (err->sys != EEXIST && err->sys != EBUSY)
            break;
    }
    return -1;
}

int net_take(struct warden *warden, struct sandbox *sandbox, const struct net_wish *wish,
             struct net_pair *ret_pair, struct error *err)
{
    struct net *net = &warden->net;
    if (!net->on)
        return error_set(err, ERROR_UNAVAILABLE, "there is no network for sandboxes: %s", net->why);
    if (take_pair(warden, ret_pair, err) < 0)
        return -1;
    sandbox->net = (struct sandbox_net){
        .index = ret_pair->index, .mark = make_mark(warden, wish), .ruled = wish->rules.len > 0};
    stock_fill(&net->stock, warden->epoll_fd, &net->router, next_index, net);
    return 0;
}

struct limit_inside {
    uint64_t rate;
};

static int limit_inside(void *arg, struct error *err)
{
    const struct limit_inside *limit = arg;
    struct netlink route = NETLINK_INIT;
    if (nl_open(NETLINK_ROUTE, &route, err) < 0)
        return -1;
    int r = link_limit(&route, PAIR_ETH0, limit->rate, err);
    nl_close(&route);
    return r;
}

/* What goes in is held back by the router's end, what goes out by the sandbox's. */
static int set_limits(struct warden *warden, const struct sandbox_net *net, int network_namespace,
                      const struct net_wish *wish, struct error *err)
{
    struct router *router = &warden->net.router;
    struct limit_inside limit = {.rate = wish->out_bytes};
    if (link_limit(&router->route, pair_ifindex(net->index), wish->in_bytes, err) < 0)
        return -1;
    return router_within(router, network_namespace, limit_inside, &limit, err);
}

int net_attach(struct warden *warden, struct sandbox *sandbox, const struct net_wish *wish,
               const struct net_pair *pair, struct error *err)
{
    char name[NET_NAME_SIZE];
    const struct filter_entry entry = entry_of(warden, &sandbox->net, name);
    struct netlink *rules = &warden->net.router.rules;
    if ((entry.mark & NET_MARK_IPV6) != 0 &&
        six_enable(&warden->net.router, sandbox->net.index, pair->network_namespace, err) < 0)
        return -1;
    int r = filter_change(rules, NULL, &entry, wish->rules, err);
    if (r < 0 && err->sys == EEXIST) { /* of somebody whose record was lost */
        filter_purge(rules, &entry);
        r = filter_change(rules, NULL, &entry, wish->rules, err);
    }
    if (r < 0)
        return -1;
    if (wish->in_bytes == 0 && wish->out_bytes == 0)
        return 0;
    sandbox->net.limited = true;
    return set_limits(warden, &sandbox->net, pair->network_namespace, wish, err);
}

int net_change(struct warden *warden, struct sandbox *sandbox, const struct net_wish *wish,
               struct error *err)
{
    char name[NET_NAME_SIZE];
    struct netlink *rules = &warden->net.router.rules;
    if (sandbox->state != SANDBOX_RUNNING || sandbox->pid == 0)
        return error_set(err, ERROR_NOT_RUNNING, "the sandbox does not run");
    if (sandbox->net.index < 0)
        return error_set(
            err, ERROR_CONFLICT,
            "the sandbox was started without network: it gets one with its next start");
    if (!warden->net.on)
        return error_set(err, ERROR_UNAVAILABLE, "there is no network for sandboxes: %s",
                         warden->net.why);
    const struct sandbox_net before = sandbox->net;
    const struct filter_entry old = entry_of(warden, &before, name);
    sandbox->net.mark = make_mark(warden, wish);
    sandbox->net.ruled = wish->rules.len > 0;
    const struct filter_entry entry = entry_of(warden, &sandbox->net, name);
    bool six = entry.mark & NET_MARK_IPV6, had_six = old.mark & NET_MARK_IPV6;
    if ((six && six_enable(&warden->net.router, before.index, sandbox->pidfd.fd, err) < 0) ||
        sandbox_save_running(sandbox, err) < 0) {
        sandbox->net = before;
        return -1;
    }
    int r = filter_change(rules, &old, &entry, wish->rules, err);
    if (r < 0 && (err->sys == ENOENT || err->sys == EEXIST)) {
        filter_purge(rules, &old);
        r = filter_change(rules, NULL, &entry, wish->rules, err);
    }
    if (r < 0) {
        sandbox->net = before;
        return -1;
    }
    if (had_six && !six)
        six_disable(&warden->net.router, before.index, sandbox->pidfd.fd);
    bool limited = wish->in_bytes != 0 || wish->out_bytes != 0;
    if (!limited && !sandbox->net.limited)
        return 0;
    sandbox->net.limited = limited;
    return set_limits(warden, &sandbox->net, sandbox->pidfd.fd, wish, err);
}

void net_detach(struct warden *warden, struct sandbox *sandbox)
{
    char name[NET_NAME_SIZE];
    struct error err;
    if (sandbox->net.index < 0)
        return;
    if (warden->net.on) {
        struct netlink *rules = &warden->net.router.rules;
        const struct filter_entry entry = entry_of(warden, &sandbox->net, name);
        if (filter_change(rules, &entry, NULL, (struct slice){0}, &err) < 0)
            filter_purge(rules, &entry);
    }
    sandbox->net = (struct sandbox_net)SANDBOX_NET_NONE;
}

const char *net_address(const struct warden *warden, const struct sandbox *sandbox,
                        char out[NET_ADDRESS_SIZE])
{
    if (sandbox->net.index < 0 || !warden->net.on)
        return NULL;
    struct in_addr in = {.s_addr = htonl(pair_address(&warden->net.router, sandbox->net.index))};
    return inet_ntop(AF_INET, &in, out, NET_ADDRESS_SIZE);
}

const char *net_address6(const struct warden *warden, const struct sandbox *sandbox,
                         char out[SIX_TEXT])
{
    const struct router *router = &warden->net.router;
    if (sandbox->net.index < 0 || !warden->net.on || !router->six.on)
        return NULL;
    const struct six_address own = six_address(router, sandbox->net.index);
    six_text(&own, out);
    return out;
}

void net_sample(struct warden *warden, const struct sandbox *sandbox, struct warden_sample *sample)
{
    struct link_counters counters;
    struct error err;
    if (sandbox->net.index < 0 || !warden->net.on ||
        link_count(&warden->net.router.route, pair_ifindex(sandbox->net.index), &counters, &err) <
            0)
        return;
    sample->known |= SAMPLE_NETWORK;
    sample->network_in_bytes = counters.out_bytes; /* what the router's end sends goes in */
    sample->network_out_bytes = counters.in_bytes;
    sample->network_in_packets = counters.out_packets;
    sample->network_out_packets = counters.in_packets;
}
