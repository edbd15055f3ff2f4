/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is known of a connection of bytes to a port of the host, as api/record.h has it of requests.
 */

#include <stdint.h>

#include "api/record.h"

struct recorded_connection { /* zeroed, but for the first five, which are borrowed until its end */
    struct recorder *recorder;
    const char *address; /* who comes: "192.0.2.7:40112" */
    const char *workspace, *sandbox_id;
    uint16_t port; /* of the sandbox */
    int64_t begun_us;
    struct caller caller;
    bool has_stream; /* one of the places for streams */
};

/* Counts it against the address, and takes a place among the streams. RATE_LIMITED,
 * TOO_MANY_STREAMS. */
int record_connection_begin(struct recorded_connection *c, struct error *err);
/* Its line: it is let in, or (why) it is not. */
void record_connection_tell(const struct recorded_connection *c, const struct error *why);
/* Always, also after a refusal. */
void record_connection_end(struct recorded_connection *c);
