/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Streams into sandboxes: the warden makes a socket in the sandbox's network, and it is connected
 * here. Descriptors come over a connection of their own, which lives as long as somebody wants one.
 */

#include <stdint.h>

#include "base/error.h"
#include "loop/co.h"
#include "loop/loop.h"

struct dialer { /* start from a zeroed struct, with loop and run_fd */
    struct loop *loop;
    int run_fd; /* borrowed: where warden.sock is */
    int fd;     /* while `users` > 0 and it was needed; else -1 */
    unsigned users;
    bool busy;      /* a request is under way on it */
    uint64_t epoch; /* for HELLO: that of the control connection */
    uint32_t last_id;
    struct co_cond free;
};

struct wire_schema;

/* A request that is answered with a descriptor: UNAVAILABLE when it is not. */
int dialer_ask(struct dialer *d, const struct wire_schema *schema, const void *request, int *ret_fd,
               struct error *err);

/* As the provider's `dial_name`. */
int dialer_dial_name(struct dialer *d, const char *id, const char *name, int64_t timeout_ms,
                     int *ret_fd, struct error *err);

/* As the provider's `dial`. */
int dialer_dial(struct dialer *d, const char *id, uint16_t port, int64_t timeout_ms, int *ret_fd,
                struct error *err);
