/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The network of sandboxes, as the rest of the warden uses it. A sandbox without network costs
 * nothing here: no call below is made for one but those that look at its index.
 *
 *   net_router.h   one namespace per server that all interfaces end in
 *   net_pair.h     a sandbox's namespace, interface and addresses; net_stock.h has some ready
 *   net_filter.h   what a sandbox may reach
 *   net_link.h     interfaces, addresses, bandwidth, by rtnetlink
 */

#include "base/slice.h"
#include "warden/net_pair.h"
#include "warden/net_router.h"
#include "warden/net_budget.h"
#include "warden/net_stock.h"
#include "wire/messages.h"

struct warden;
struct sandbox;

#define NET_DEFAULT_RANGE "10.201.0.0/16"

enum {
    NET_WHY_MAX = 200,
    NET_ADDRESS_SIZE = 16,
    NET_ADMISSIONS_MAX = 4096, /* of one sandbox at once … */
    NET_RANGES_MAX = 256       /* … of ranges of ports, which cost the kernel more */
};

struct net_options {
    bool on;
    struct router_options router;
    int listen_fd; /* for the egress process; -1: none */
};

struct net {
    bool on;
    bool fresh;            /* the router was made by this warden */
    char why[NET_WHY_MAX]; /* not on: the reason, for people */
    struct router router;
    struct net_stock stock;
    int cursor;          /* the index that is tried next */
    uint32_t generation; /* the last one that was given out */
    bool recurring; /* some that come next may be somebody's: a warden's before, or of long ago */
};

#define NET_INIT                                                                                   \
    {                                                                                              \
        .router = ROUTER_INIT, .stock = NET_STOCK_INIT                                             \
    }

/* What a sandbox has of it. */
struct sandbox_net {
    int index;     /* -1: none */
    uint32_t mark; /* net_filter.h; 0: cut off */
    bool ruled;    /* it has a chain of its own */
    bool limited;  /* it has, or may have, a limit of bandwidth */
    struct net_budget admissions, ranges;
};

#define SANDBOX_NET_NONE                                                                           \
    {                                                                                              \
        .index = -1                                                                                \
    }

/* The part of a plan, or of a new policy, that is the kernel's. */
struct net_wish {
    uint64_t mode, flags;
    uint64_t in_bytes, out_bytes;
    struct slice rules; /* struct plan_net_rule … */
};

struct net_wish net_wish_of_plan(const struct plan *plan);

/* As a stranger's: INVALID_ARGUMENT. */
int net_wish_check(const struct net_wish *wish, struct error *err);

/* In two steps: the first one before the warden enters a mount namespace of its own. A machine that
 * cannot is no error: net->why tells. */
void net_mount(struct net *net, const char *data, const struct net_options *options);
void net_open(struct net *net, const char *data, const char *instance,
              const struct net_options *options);
/* Interfaces in the router that belong to no sandbox that was adopted. */
void net_clear_strangers(struct warden *warden);

/* Ends the process and lets go of the router; net_remove() then takes that down, in the machine's
 * mount namespace. */
void net_close(struct net *net);
void net_remove(const char *data, const char *instance);

/* A namespace for a sandbox: fills sandbox->net. UNAVAILABLE. */
int net_take(struct warden *warden, struct sandbox *sandbox, const struct net_wish *wish,
             struct net_pair *ret_pair, struct error *err);
/* The rules and the limits of a new one; `pair` is the one that was taken. */
int net_attach(struct warden *warden, struct sandbox *sandbox, const struct net_wish *wish,
               const struct net_pair *pair, struct error *err);
/* Others, of one that runs: all or none. */
int net_change(struct warden *warden, struct sandbox *sandbox, const struct net_wish *wish,
               struct error *err);
/* Nothing of it passes any more; its interface goes with its namespace. */
void net_detach(struct warden *warden, struct sandbox *sandbox);

/* "10.201.0.7"; NULL when it has none. The other one is that of IPv6, which it need not use. */
const char *net_address(const struct warden *warden, const struct sandbox *sandbox,
                        char out[NET_ADDRESS_SIZE]);
const char *net_address6(const struct warden *warden, const struct sandbox *sandbox,
                         char out[SIX_TEXT]);

/* Fills in the network's part. */
void net_sample(struct warden *warden, const struct sandbox *sandbox, struct warden_sample *sample);

/* For the egress process (WARDEN_NET_ADMIT, WARDEN_NET_LISTEN, WARDEN_NET_COUNT). */
int net_admit(struct warden *warden, const struct warden_net_admit *request, struct error *err);
int net_listen_socket(struct warden *warden, uint64_t which, int *ret_fd, struct error *err);
int net_count(struct warden *warden, const struct warden_net_count *request,
              struct warden_net_counted *ret_counted, struct error *err);
