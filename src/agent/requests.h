/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The AGENT_* requests: one table of handlers. */

#include "agent/connection.h"
#include "base/slice.h"

/* One that is being handled: where its answer goes. */
struct request {
    struct connection *connection;
    uint32_t id;
    struct slice payload;
};

/* Answers, now or later, or returns an error, which becomes the answer. `msg` is the decoded
 * payload. */
typedef int request_handler(struct agent *agent, const struct request *request, const void *msg,
                            struct error *err);

/* Handles one frame; every request gets its answer or a WIRE_ERROR. */
void request_handle(struct agent *agent, struct connection *connection,
                    const struct frame_header *header, struct slice payload);

/* Goes on with an AGENT_LIST that did not fit into the queue at once. */
void request_go_on_listing(struct agent *agent, struct connection *connection);
