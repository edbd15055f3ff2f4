/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A connection of cellad. Several requests can be under way; answers are queued up to a maximum,
 * past which the reader is too slow and the connection is closed. While a lot is queued no
 * further requests are taken from it.
 *
 * A connection is only marked as broken where something goes wrong, and freed at the end of the
 * loop's turn, so that handlers may go on using it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "agent/watch.h"
#include "base/buf.h"
#include "wire/frame.h"

struct attachment;

struct connection {
    struct connection *next;
    struct watch watch;
    struct buf in;
    struct buf out;
    size_t out_sent;
    bool had_frames;
    bool broken;
    bool listing; /* an AGENT_LIST is being answered … */
    uint32_t listing_id;
    uint64_t listing_after;        /* … up to this place in the table */
    struct attachment *attachment; /* the terminal that it is attached to, or NULL … */
    bool held;                     /* … and whose input has no room: no frames are taken */
    struct follower *follower;     /* it reads a process's output */
    bool brings_limits;            /* descriptors come next (AGENT_LIMITS), for request … */
    uint32_t limits_id;
};

/* To be called when the listening socket is ready. */
watch_ready connections_accept;

/* Queues an answer and sends what can be sent. */
void connection_answer(struct agent *agent, struct connection *connection,
                       const struct wire_schema *schema, uint32_t id, const void *msg);
void connection_answer_error(struct agent *agent, struct connection *connection, uint32_t id,
                             const struct error *err);

/* For who queues frames by itself, in `out`: whether all was sent, and sending. */
bool connection_is_idle(const struct connection *connection);
void connection_flush(struct agent *agent, struct connection *connection);
/* Sends a frame from where it lies, when nothing is queued; only what does not go out is copied. */
void connection_send(struct agent *agent, struct connection *connection, const struct iovec *iov,
                     int pieces);

/* True while more answers should be queued. */
bool connection_has_room(const struct connection *connection);
/* Bytes that are queued. */
size_t connection_queued(const struct connection *connection);

/* Goes on taking frames on a connection that was held. */
void connection_let_go(struct agent *agent, struct connection *connection);

/* End of the turn: frees the broken ones. */
void connections_sweep(struct agent *agent);
void connections_release(struct agent *agent);
