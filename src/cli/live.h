/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A process's output as it comes, on our stdout and stderr, byte for byte; our stdin as its input;
 * Ctrl-C as its end. A connection that is lost on the way is made again from where it was, so that
 * a restart of the server goes unnoticed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cli/client.h"

struct live_request {
    const char *processes;  /* target of the sandbox's /process */
    yyjson_mut_doc *exec;   /* what is to be started; or … */
    const char *process;    /* … a pid or name to join … */
    uint64_t offset;        /* … from here on */
    bool hold;              /* it waits for us: nothing is missed */
    bool input;             /* pass stdin on */
    bool stop_on_interrupt; /* the first Ctrl-C stops it, the second kills it, the third is ours */
};

struct live_end {
    yyjson_val *process; /* as it ended; lives as long as the client */
    uint64_t dropped;    /* bytes that were not kept for us */
    bool interrupted;    /* we have ended it */
};

/* Returns at the end of the process. */
int live_run(struct client *client, const struct live_request *request, struct live_end *ret_end,
             struct error *err);
