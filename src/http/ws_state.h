/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What websocket.c and ws_handshake.c share. */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "http/websocket.h"
#include "loop/co.h"
#include "loop/loop.h"

enum { WS_PROTOCOL_SIZE = 64 };

struct websocket {
    struct loop *loop;
    int fd; /* the server's belongs to its connection, the client's is owned */
    bool is_client;
    char protocol[WS_PROTOCOL_SIZE];

    /* waiting */
    struct watch watch;
    uint32_t wants; /* events that somebody waits for */
    struct co_cond readable;
    struct co_cond writable;

    /* sending */
    bool sending; /* the lock: somebody is writing a frame */
    struct co_cond unlocked;
    bool close_sent;
    bool broken; /* a frame was left half written */
    bool pong_owed;
    unsigned char pong[WS_CONTROL_MAX];
    unsigned pong_len;

    /* receiving */
    struct ws_decoder frames;
    unsigned char *in; /* in[in_start … in_end) is not used yet */
    size_t in_start;
    size_t in_end;
    size_t in_cap;
    struct buf message;
    unsigned char control[WS_CONTROL_MAX]; /* a control frame's payload */
    unsigned control_len;
    int64_t ping_ms;
    bool pinged;    /* and nothing has come since */
    int on_the_way; /* bytes that were sent and not taken, when it was last asked */
    bool ended;     /* nothing more will be read */
    unsigned peer_code;
};

/* Takes the descriptor of a client's socket over, once it has succeeded. options: NULL is fine. */
struct websocket *websocket_new(struct loop *loop, int fd, bool is_client, struct slice early,
                                const struct websocket_options *options, struct error *err);
