/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Being attached to a terminal session: its output on our stdout, our keys as its input, our size
 * as its size. A connection that is lost is made again, and goes on to the byte where it was, both
 * ways. Whatever ends it, the terminal that somebody sits at is left as it was found.
 */

#include <stdbool.h>

#include "cli/client.h"

struct attach_request {
    const char *sandbox;
    const char *session;
    bool keep; /* a signal that ends us leaves the session alone */
};

struct attach_end {
    int status;    /* the shell's exit status; 128 + signal when one ended us */
    bool detached; /* it goes on without us */
    bool closed;   /* somebody closed it, or nobody was there for too long */
};

/* Returns at the session's end, or ours. */
int attach_run(struct client *client, const struct attach_request *request,
               struct attach_end *ret_end, struct error *err);
