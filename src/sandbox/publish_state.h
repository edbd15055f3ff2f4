/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The live state behind publish.h, for publish.c and port_command.c. */

#include "sandbox/publish.h"
#include "sandbox/state.h"

enum { PORT_GENERATION_LEN = 16 };

struct published {
    struct sandbox *sandbox;
    uint16_t port;
    enum publish_protocol protocol;
    enum port_access access;
    unsigned host_port; /* 0: none */
    bool open;          /* the gate listens there */
    char *host_error;
    char *command;
    char generation[PORT_GENERATION_LEN + 1];
    int64_t created_ms, updated_ms;
    char created_by[ACTOR_MAX];
    bool starting;          /* somebody starts its command, and waits for the port */
    int64_t started_ms;     /* by the loop's clock: when that was last done; 0: never */
    unsigned started_agent; /* … and by which of the sandbox's agents */
    struct published *prev, *next;
    UT_hash_handle hh; /* by the host's port */
};

struct published *published_find(struct sandbox *sb, uint16_t port); /* NULL: it is not */
