/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An fd that the loop watches, and what to do when it is ready. The fd belongs to the source. */

#include <stdint.h>

#include "base/error.h"

struct source {
    int fd; /* -1: none */
    int epoll_fd;
    void (*ready)(struct source *source, uint32_t events);
};

#define SOURCE_INIT                                                                                \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Takes fd over, whatever happens. `events` are epoll's. */
int source_watch(int epoll_fd, struct source *source, int fd, uint32_t events,
                 void (*ready)(struct source *source, uint32_t events), struct error *err);
int source_change(struct source *source, uint32_t events, struct error *err);
void source_close(struct source *source);
