/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers without an end, of logs: a line of JSON per entry, or an event where the caller asks for
 * events, and a sign of life when there is nothing to say for a while.
 */

#include "api/call.h"
#include "base/buf.h"

enum { LOG_STREAM_KEEPALIVE_MS = 15 * 1000 };

/* Appends an entry as the stream has it. */
void log_stream_add(struct arena *arena, yyjson_mut_doc *entry, bool events, struct buf *out);

/* What comes next, waited for LOG_STREAM_KEEPALIVE_MS at most: entries into out, or nothing. What
 * it needs for that lives in the arena, which is gone after it. */
typedef int log_stream_next(void *reader, struct arena *arena, bool events, struct buf *out,
                            bool *ret_ended, struct error *err);

/* Sends what comes until the reader has ended, in batches of at most batch_max bytes. */
int log_stream_send(struct http_exchange *x, log_stream_next *next, void *reader, size_t batch_max,
                    struct error *err);
