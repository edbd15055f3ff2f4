/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * WebSocket (RFC 6455), both ends.
 *
 * Two coroutines may share one: one reads, any number send. A handler with two directions starts a
 * task (loop/task.h) for the other one:
 *
 *     websocket_accept(x, NULL, &ws, err);
 *     task_start(loop, &out, send_what_the_sandbox_says, …);      // websocket_send() …
 *     while ((rc = websocket_read(ws, &message, err)) > 0) …      // on this one
 *     task_stop(&out);
 *     websocket_free(ws);
 *
 * When the other direction ends first, it calls websocket_close(): the peer answers, and the reader
 * gets 0; a peer that does not answer within WEBSOCKET_CLOSE_MS is left.
 *
 * Pings are answered while somebody reads. A peer that says nothing for WEBSOCKET_PING_MS is
 * pinged, and is taken for dead (TIMEOUT) after as long again. So there is always somebody reading.
 */

#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "http/client.h"
#include "http/server.h"
#include "http/ws_frame.h"

struct websocket;

struct websocket_options {
    const char *const *protocols; /* subprotocols, the best first, NULL at the end; or NULL */
    size_t message_max;           /* 0: WEBSOCKET_MESSAGE_MAX */
    int64_t ping_ms;              /* of silence before a ping; 0: WEBSOCKET_PING_MS */
};

/* Answers the exchange with 101. options may be NULL. UPGRADE_REQUIRED (426, with what is spoken
 * here) for anything but a WebSocket request of version 13; INVALID_HTTP for a bad key. */
int websocket_accept(struct http_exchange *x, const struct websocket_options *options,
                     struct websocket **ret_ws, struct error *err);

/* The client's side: call->target and call->headers of a GET. When the server does not answer 101,
 * this is 0 with *ret_ws NULL, and *ret_answer is read like any other one. The client has no
 * connection afterwards; it must outlive the websocket. */
int websocket_connect(struct http_client *client, const struct http_call *call,
                      const struct websocket_options *options, struct websocket **ret_ws,
                      struct http_answer *ret_answer, struct error *err);

/* The subprotocol that was agreed on; NULL: none. */
const char *websocket_protocol(const struct websocket *ws);

struct ws_message {
    bool text;
    struct slice data; /* until the next read */
};

/* 1: a message; 0: the peer closed (websocket_peer_code() says with what), or was left after our
 * own Close; -1: it broke the protocol (it was told) or the connection was lost. */
int websocket_read(struct websocket *ws, struct ws_message *ret_message, struct error *err);
unsigned websocket_peer_code(const struct websocket *ws);

/* One message in one frame; waits while the peer does not take it, and for others that send. Fails
 * once a Close was sent. opcode: WS_TEXT (the text must be UTF-8), WS_BINARY. */
int websocket_send(struct websocket *ws, enum ws_opcode opcode, const void *data, size_t len,
                   struct error *err);

/* Sends Close, once; further calls do nothing. reason: UTF-8, cut at WS_REASON_MAX. Wakes the
 * reader, which goes on until the peer's Close. */
int websocket_close(struct websocket *ws, enum ws_close_code code, const char *reason,
                    struct error *err);

/* Nobody may be waiting in it. Without a Close before, the peer is told 1001, if it takes it at
 * once. NULL is fine. */
void websocket_free(struct websocket *ws);
