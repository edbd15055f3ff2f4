/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Connections outward. Whatever a policy says, nobody is connected to this machine: the kernel's
 * own routes are asked whether an address is one of its, so an address that was added a second ago
 * counts too. (A firewall rule on this process's user says the same again, outside of it.)
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "network/address.h"

struct reach {
    struct loop *loop;
    int route_fd; /* to the kernel */
    uint32_t sequence;
};

int reach_init(struct reach *reach, struct loop *loop, struct error *err);
void reach_release(struct reach *reach);

/* Whether the address is somebody else's, and there is a way to him. */
bool reach_is_outside(struct reach *reach, const struct net_address *address);

/* UNAVAILABLE, TIMEOUT; FORBIDDEN when it is not outside. On a coroutine. */
int reach_connect(struct reach *reach, const struct net_address *address, uint16_t port,
                  int64_t timeout_ms, int *ret_fd, struct error *err);

/* The socket address; returns its length. */
socklen_t reach_sockaddr(const struct net_address *address, uint16_t port,
                         struct sockaddr_storage *ret_to);
