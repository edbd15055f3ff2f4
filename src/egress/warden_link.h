/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the egress process asks of the warden, over the one socket that takes nothing else: the
 * sockets that sandboxes' questions and connections arrive at, and that an address which a sandbox
 * was told is let through for a while.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "egress/direct.h"
#include "loop/co.h"
#include "network/policy.h"
#include "wire/messages.h"

struct warden_link { /* start from a zeroed struct, with loop and path; fd -1 */
    struct loop *loop;
    const char *path;
    int fd;
    bool busy;
    uint32_t last_id;
    struct co_cond free;
};

void warden_link_release(struct warden_link *link);

/* A listening (of UDP: bound) socket in the sandboxes' router. UNAVAILABLE. On a coroutine, as the
 * next one. */
int warden_link_listen(struct warden_link *link, enum net_listener which, int *ret_fd,
                       struct error *err);

/* Returns once the kernel lets it through. NOT_RUNNING when the address is no longer that of the
 * sandbox `id`. */
int warden_link_admit(struct warden_link *link, const char *id, const struct net_address *guest,
                      const struct net_address *address, const struct net_admission *ports,
                      uint32_t ttl_s, struct error *err);

/* How much a connection past the proxies was. An error when the kernel does not know it any more.
 */
int warden_link_count(struct warden_link *link, const struct direct_key *key,
                      struct net_relayed *ret_moved, struct error *err);
