/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The AGENT_* requests: one table of handlers. */

#include "agent/connection.h"
#include "base/slice.h"

/* Handles one frame; every request gets its answer or a WIRE_ERROR. */
void request_handle(struct agent *agent, struct connection *connection,
                    const struct frame_header *header, struct slice payload);

/* Goes on with an AGENT_LIST that did not fit into the queue at once. */
void request_go_on_listing(struct agent *agent, struct connection *connection);
