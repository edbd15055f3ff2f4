/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A few networks made ahead, by a process of their own: a network namespace with its cable takes
 * longer than all the rest of a sandbox, and most of that is waiting for a lock that the whole
 * machine's network has in common. None are made before the first one is asked for.
 *
 * They are held by nothing but descriptors: those of a warden that is killed vanish by themselves.
 */

#include <stddef.h>
#include <sys/types.h>

#include "warden/net_pair.h"
#include "warden/source.h"

enum { STOCK_SIZE = 8 };

struct net_stock {
    pid_t pid; /* of the process; 0: none */
    struct source channel;
    struct net_pair ready[STOCK_SIZE];
    size_t count;
    size_t asked; /* that are being made */
};

#define NET_STOCK_INIT                                                                             \
    {                                                                                              \
        .channel = SOURCE_INIT                                                                     \
    }

/* Takes one; false when none is ready. */
bool stock_take(struct net_stock *stock, struct net_pair *ret_pair);

/* Has as many made as are missing; next_index says which. Starts the process if need be. */
void stock_fill(struct net_stock *stock, int epoll_fd, const struct router *router,
                int (*next_index)(void *arg), void *arg);

void stock_close(struct net_stock *stock);
