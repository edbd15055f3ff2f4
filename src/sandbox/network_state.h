/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files about networks share with the rest of this folder. */

#include "loop/co.h"
#include "provider/channel.h"
#include "sandbox/network.h"

struct sandbox;

/* A sandbox's. */
struct sandbox_network {
    char *packed; /* its policy, as it is stored; owned */
    size_t packed_len;
    enum net_mode mode;
    bool proxied;
    bool has_headers;
    struct plan_net_rule *rules; /* for the kernel, in the order they are looked at; owned */
    size_t rule_count;
    bool ipv6;
    char address[NET_ADDRESS_TEXT];  /* "": it was not started with a network */
    char address6[NET_ADDRESS_TEXT]; /* that it uses if its policy has IPv6; "": none here */
    unsigned told; /* over which connection the egress process was told before it ran; 0: none */
};

/* The log of what it tried to reach. */
struct sandbox_network_log {
    uint64_t last;  /* the highest number that was seen of it; 0: none */
    bool unread;    /* there is a file of it, from before this process began */
    bool forgotten; /* it is deleted: nothing of it is written any more */
    unsigned followers;
    struct co_cond news; /* something was added, or has changed */
};

struct network_logs;

/* All of them. */
struct networks {
    struct net_exceptions exceptions;
    bool available;
    char reason[256]; /* why not */
    int run_fd;
    struct channel *egress;  /* NULL while there is none */
    uint64_t egress_started; /* which one it is, or was */
    struct network_logs *logs;
    unsigned connection; /* the how manieth */
    uint64_t epoch;      /* of its connections; see struct egress_hello */
    struct co *keeper;   /* connects, and tells everything */
    struct co_cond wake; /* the connection is gone, or not wanted any more */
    bool closing;
    network_secrets *secrets;
    network_secret_check *secret_check;
    void *secrets_ctx;
};

/* network.c */
int sandbox_network_load(struct sandbox *sb, struct slice packed, struct error *err);
void sandbox_network_release(struct sandbox *sb);
/* What a request makes of its policy, packed, in the arena. CONFLICT when it runs and was started
 * without a network; the errors of network_resolve(). */
int sandbox_network_change(struct sandbox *sb, const struct network_request *request,
                           bool may_loosen, struct arena *arena, struct slice *ret_packed,
                           struct error *err);
/* spec.security tells what spec.network has, which is where it is changed: INVALID_ARGUMENT when a
 * request has it say something else. Who sends back what he was shown is fine. */
int sandbox_network_agrees(const struct sandbox *sb, const struct trust_request *security,
                           struct error *err);
/* The plan's part; borrowed from the sandbox. */
void sandbox_network_plan(const struct sandbox *sb, struct plan *plan);
/* What the provider said where it is; NULL: nowhere. */
void sandbox_network_at(struct sandbox *sb, const char *address, const char *address6);
/* On a coroutine: the warden is told what holds for it, which may run for nobody yet. */
int sandbox_network_set(struct sandbox *sb, struct error *err);
/* On a coroutine: the warden is told again. The kernel forgets by that which addresses it was told
 * to let through, so the egress process is to forget it, too. */
int sandbox_network_renew(struct sandbox *sb, struct error *err);
/* On a coroutine: both are told what holds for a sandbox that runs. */
int sandbox_network_apply(struct sandbox *sb, struct error *err);
/* On a coroutine: it has just come up, or does not run any more. */
void sandbox_network_started(struct sandbox *sb);
void sandbox_network_stopped(struct sandbox *sb);
/* What the provider says about networks here. */
void networks_look(struct sandboxes *s);

/* network_secrets.c: the errors of network_secret_check, for headers that are not in `before`. */
int network_check_secrets(struct sandboxes *s, const char *workspace, struct slice before,
                          const struct net_policy *policy, struct error *err);

/* egress_link.c */
int egress_link_open(struct sandboxes *s, int data_dir_fd, struct error *err);
void egress_link_start(struct sandboxes *s); /* when all sandboxes are known */
void egress_link_stop(struct sandboxes *s);
void egress_link_free(struct sandboxes *s);
/* On a coroutine: what holds for it, none when it does not run. UNAVAILABLE while there is no
 * egress process: it is told as soon as there is one. */
int egress_tell(struct sandbox *sb, struct error *err);
/* The same for one that will run in a moment, while the caller goes on with something else. Ends
 * with egress_told(), on a coroutine that nobody cancels; should it fail, or another connection
 * come in between, sandbox_network_started() makes up for it. */
struct egress_telling {
    struct sandbox *sb;
    bool under_way;
    struct co_cond over;
};
void egress_tell_ahead(struct sandbox *sb, struct egress_telling *telling);
void egress_told(struct egress_telling *telling);
void egress_forget(struct sandbox *sb); /* on a coroutine: it is deleted */

/* network_log.c */
int network_logs_new(struct sandboxes *s, int data_dir_fd, struct error *err);
void network_logs_start(struct sandboxes *s); /* when all sandboxes are known */
void network_logs_stop(struct sandboxes *s);
void network_logs_free(struct sandboxes *s);
/* On a coroutine: the number that an egress process which does not know it should go on from. */
uint64_t network_log_after(struct sandbox *sb);
void network_log_forget(struct sandbox *sb); /* on a coroutine: it is deleted */
