/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The heads of a session of egress/inject.h: what goes to the host, and what comes back, written
 * anew from what was understood. Pure. */

#include "base/buf.h"
#include "egress/inject.h"
#include "egress/redact.h"
#include "http/parse.h"

/* How a body is framed on its way on. */
enum inject_framing { FRAMING_NONE, FRAMING_LENGTH, FRAMING_CHUNKED, FRAMING_TO_END };

/* Whether a request may be served at all: INVALID_HTTP for a host that is not the session's (421),
 * METHOD_NOT_ALLOWED for TRACE. */
int inject_check_request(const struct inject_session *session, const struct request_head *head,
                         struct error *err);
/* Whether it asks for a WebSocket. */
bool inject_wants_upgrade(const struct request_head *head);

/* Appends the request's head, with the secrets in it: wipe the buffer. */
void inject_write_request(struct buf *out, const struct inject_session *session,
                          const struct request_head *head, bool upgrade);

/* How an answer's body comes. */
enum inject_framing inject_answer_framing(const struct answer_head *answer, bool to_head_request);
/* Whether it can be passed on: UPSTREAM_FAILED for a part of one (206), and for a body in an
 * encoding that nobody asked for. */
int inject_check_answer(const struct inject_session *session, const struct answer_head *answer,
                        enum inject_framing framing, struct error *err);
/* Appends the answer's head, without secrets. reason: of its status line; framing: as it goes on,
 * after which the connection is closed if `close`. */
void inject_write_answer(struct buf *out, const struct inject_session *session,
                         struct redact *redact, const struct answer_head *answer,
                         struct slice reason, enum inject_framing framing, bool close);
