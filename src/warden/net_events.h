/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happens in the router, for the egress process to write down: sockets of the kernel's that
 * tell of it, made and subscribed here and then handed over. Whoever has one can listen, and
 * nothing else: the kernel asks every sender for rights that the egress process does not have.
 */

#include <stdbool.h>

#include "warden/net_router.h"
#include "wire/messages.h"

/* Of connections that are forwarded; or of packets that the rules refuse, which one socket at a
 * time can have. UNAVAILABLE. */
int events_open(const struct router *router, bool refusals, int *ret_fd, struct error *err);

/* By a socket in the router. ENOENT's error (err->sys): the kernel has forgotten it.
 * INVALID_ARGUMENT. */
int events_count(struct netlink *rules, const struct warden_net_count *request,
                 struct warden_net_counted *ret_counted, struct error *err);
