/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests and answers over one connection to a warden or an agent: any number of coroutines call
 * at the same time, each waits for its own answer. Reading is done by the loop, so an idle channel
 * costs a descriptor and a few hundred bytes, no coroutine.
 *
 * The other end is not trusted: what it sends is checked against the schema that the caller
 * expects, and a frame that nobody can have asked for closes the channel.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "loop/loop.h"
#include "observe/meters.h"
#include "wire/frame.h"

struct channel;

struct channel_events {
    /* A frame with id 0. May be NULL: then such a frame closes the channel. */
    void (*event)(void *ctx, const struct frame_header *header, struct slice payload);
    /* The connection is gone; every call has failed or is about to. Free the channel when it suits.
     */
    void (*closed)(void *ctx);
    /* What tells the other end that a call was given up (cancelled, or out of time); a message
     * without fields, sent with the call's id. NULL: it is not told. */
    const struct wire_schema *cancel;
    enum meter_histogram meter; /* that its calls are measured with; 0: none */
    void *ctx;
};

/* Takes fd over. */
struct channel *channel_new(struct loop *loop, int fd, const struct channel_events *events,
                            struct error *err);
/* Fails the calls under way with UNAVAILABLE; the memory goes when the last of them has returned.
 */
void channel_free(struct channel *channel);
bool channel_is_open(const struct channel *channel);
/* How many calls are under way; and how many questions. */
unsigned channel_calls(const struct channel *channel);
unsigned channel_questions(const struct channel *channel);

/*
 * Sends a request and waits for its answer, which must be of the given schema (or an error, which
 * becomes *err). Strings in *ret_msg live in the arena. timeout_ms -1: as long as it takes.
 */
int channel_call(struct channel *channel, const struct wire_schema *schema, const void *msg,
                 const struct wire_schema *answer, struct arena *arena, void *ret_msg,
                 int64_t timeout_ms, struct error *err);

/* The same for requests that are answered by any number of items and a WIRE_OK. each() is called on
 * the waiting coroutine after all have come; more than max_items is an error. */
int channel_list(struct channel *channel, const struct wire_schema *schema, const void *msg,
                 const struct wire_schema *item, struct arena *arena, size_t max_items,
                 int (*each)(void *ctx, const void *item, struct error *err), void *ctx,
                 int64_t timeout_ms, struct error *err);

/* The answer to a question (of the schema that was asked for, good until the return), or (NULL) why
 * there is none. Called by the loop: it may not wait, nor use the channel. */
typedef void channel_told(void *ctx, const void *answer, const struct error *why);

/*
 * Asks for something that may take for ever, such as a process's end: no coroutine waits, and all
 * that it costs is a few hundred bytes. told() is called once in any case, perhaps before this
 * returns. On a coroutine; at most CHANNEL_QUESTIONS_MAX at a time.
 */
void channel_ask(struct channel *channel, const struct wire_schema *schema, const void *msg,
                 const struct wire_schema *answer, channel_told *told, void *ctx);
