/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where sandboxes come from: one contract that knows only plans. `native` speaks to the warden;
 * others (Docker, Kubernetes) fill the same table.
 *
 * All calls but the destructor wait, so they are made on coroutines.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "loop/loop.h"
#include "wire/messages.h"

struct provider;

enum { PROVIDER_ADDRESS_SIZE = 46 };

struct provider_events {
    /* A sandbox's pid 1 ended without being asked to. */
    void (*exited)(void *ctx, const char *id, bool out_of_memory);
    /* The connection to the provider was lost and is there again: compare what runs. */
    void (*reconnected)(void *ctx);
    void *ctx;
};

/* What a start tells besides. */
struct provider_started {
    bool fresh;  /* its writable layer was made by this start */
    bool joined; /* an earlier start was making it, with a plan that may have been another */
    char address[PROVIDER_ADDRESS_SIZE];  /* in its network: "10.201.0.7"; "": it has none */
    char address6[PROVIDER_ADDRESS_SIZE]; /* of IPv6, if it may use that */
};

struct provider_ops {
    const char *name;
    int (*start)(struct provider *p, const struct plan *plan, struct provider_started *ret_started,
                 struct error *err);
    int (*stop)(struct provider *p, const char *id, int64_t grace_ms, struct error *err);
    int (*remove)(struct provider *p, const char *id, struct error *err);
    /* Has all of it stand still where it is, with its memory, whoever is killed meanwhile, or go
     * on. Fine when it does already. NOT_RUNNING; pause: TIMEOUT, and it goes on. */
    int (*pause)(struct provider *p, const char *id, struct error *err);
    int (*resume)(struct provider *p, const char *id, struct error *err);
    /* The files of request->source become those of request->id; see struct warden_clone. */
    int (*clone)(struct provider *p, const struct warden_clone *request, struct error *err);
    /* New limits; see struct warden_update. */
    int (*update)(struct provider *p, const struct warden_update *request, struct error *err);
    /* Another network policy for one that runs; see struct warden_net_set. */
    int (*net_set)(struct provider *p, const struct warden_net_set *request, struct error *err);
    /* A sandbox that was made ahead (plan.spare) becomes what the plan says; see WARDEN_CLAIM. */
    int (*claim)(struct provider *p, const struct plan *plan, struct error *err);
    /* RESOURCE_IN_USE when its files take more than this. */
    int (*fits)(struct provider *p, const char *id, uint64_t disk_bytes, struct error *err);
    int (*list)(struct provider *p,
                int (*each)(void *ctx, const struct warden_entry *entry, struct error *err),
                void *ctx, struct error *err);
    /* What the running ones among these (a list of at most STATS_IDS_MAX ids) use. */
    int (*stats)(struct provider *p, struct slice ids,
                 int (*each)(void *ctx, const struct warden_sample *sample, struct error *err),
                 void *ctx, struct error *err);
    /* A new connection to a running sandbox's agent. */
    int (*connect)(struct provider *p, const char *id, int *ret_fd, struct error *err);
    /* A stream to a TCP port on the sandbox's own loopback, and nobody else's: 127.0.0.1, then ::1.
     * PORT_NOT_LISTENING, NOT_RUNNING, TIMEOUT. */
    int (*dial)(struct provider *p, const char *id, uint16_t port, int64_t timeout_ms, int *ret_fd,
                struct error *err);
    /* A stream to an abstract unix name ("code-x", without the NUL in front) in the sandbox.
     * PORT_NOT_LISTENING, NOT_RUNNING, TIMEOUT. */
    int (*dial_name)(struct provider *p, const char *id, const char *name, int64_t timeout_ms,
                     int *ret_fd, struct error *err);
    /* Has a running sandbox's agent be able to limit single commands. What it is to be handed for
     * that is in ret_fds, in the order of AGENT_LIMITS; -1: there is nothing to be handed over. */
    int (*delegate)(struct provider *p, const char *id, int ret_fds[LIMIT_FDS], struct error *err);
    /* A file that takes the pid of a process which is to be in a group of helpers; see struct
     * warden_helper. FILE_NOT_FOUND past the last part. */
    int (*helper)(struct provider *p, unsigned group, unsigned part, int *ret_fd,
                  struct error *err);
    /* What there is below the sandboxes. Strings are in the arena. */
    int (*machine)(struct provider *p, struct arena *arena, struct warden_machine *ret_machine,
                   struct error *err);
    /* What is in force, for people: storage and cgroups. Strings belong to the provider. */
    int (*about)(struct provider *p, struct warden_about *ret_about, struct error *err);
    void (*free)(struct provider *p);
};

struct provider {
    const struct provider_ops *ops;
};

/* data_dir_fd: the data folder (borrowed for the provider's life). Connects when first used, and
 * again, with patience, whenever the warden was restarted. */
int provider_native_new(struct loop *loop, int data_dir_fd, const struct provider_events *events,
                        struct provider **ret_provider, struct error *err);
