/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A WebSocket once the handshake is over: one watch on its socket, a place to wait for each
 * direction, and a lock, so that frames of several senders do not mix. Frames themselves are in
 * ws_frame.c, the two handshakes in ws_handshake.c.
 */

#include "http/websocket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "http/ws_state.h"

enum {
    IN_SIZE = 4096,
    KEEP_MAX = 64 * 1024, /* of a message's memory, between messages */
    PIECE = 8192,
};

/* --- waiting --- */

static void ready(struct watch *watch, uint32_t events)
{
    struct websocket *ws = container_of(watch, struct websocket, watch);
    uint32_t ended = events & (EPOLLHUP | EPOLLERR);
    uint32_t wanted = ws->wants;
    if ((events & (EPOLLIN | EPOLLRDHUP)) || ended)
        ws->wants &= ~(uint32_t)EPOLLIN;
    if ((events & EPOLLOUT) || ended)
        ws->wants &= ~(uint32_t)EPOLLOUT;
    uint32_t woken = wanted & ~ws->wants;
    if (woken & EPOLLIN)
        co_cond_wake(&ws->readable);
    if (woken & EPOLLOUT)
        co_cond_wake(&ws->writable);
    if (woken != 0)
        return;
    if (ended) /* it would tell the same again and again; reads and writes know it too */
        watch_stop(watch);
    else
        watch_change(watch, ws->wants, NULL);
}

/* As conn_wait(): the watch is changed only when it has to be. */
static int wait_for(struct websocket *ws, uint32_t event, int64_t timeout_ms, struct error *err)
{
    struct co_cond *cond = event == EPOLLIN ? &ws->readable : &ws->writable;
    if (ws->watch.loop == NULL)
        return 0;
    ws->wants |= event;
    if ((ws->watch.events & event) == 0 &&
        watch_change(&ws->watch, ws->watch.events | event, err) != 0)
        return -1;
    int rc = co_cond_wait(ws->loop, cond, timeout_ms, err);
    ws->wants &= ~event;
    return rc;
}

struct websocket *websocket_new(struct loop *loop, int fd, bool is_client, struct slice early,
                                const struct websocket_options *options, struct error *err)
{
    struct websocket *ws = calloc(1, sizeof(*ws));
    size_t cap = early.len > IN_SIZE ? early.len : IN_SIZE;
    unsigned char *in = malloc(cap);
    if (ws == NULL || in == NULL) {
        free(ws);
        free(in);
        error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a WebSocket");
        return NULL;
    }
    const struct websocket_options none = {0};
    if (options == NULL)
        options = &none;
    size_t message_max = options->message_max == 0 ? WEBSOCKET_MESSAGE_MAX : options->message_max;
    *ws =
        (struct websocket){.loop = loop,
                           .fd = fd,
                           .is_client = is_client,
                           .in = in,
                           .in_end = early.len,
                           .in_cap = cap,
                           .ping_ms = options->ping_ms == 0 ? WEBSOCKET_PING_MS : options->ping_ms,
                           .peer_code = WS_CLOSE_ABNORMAL,
                           .frames = {.from_client = !is_client, .message_max = message_max}};
    if (early.len > 0)
        memcpy(in, early.data, early.len);
    buf_init(&ws->message, message_max);
    if (watch_start(loop, &ws->watch, fd, EPOLLIN, ready, err) != 0) {
        free(in);
        free(ws);
        return NULL;
    }
    return ws;
}

const char *websocket_protocol(const struct websocket *ws)
{
    return ws->protocol[0] == '\0' ? NULL : ws->protocol;
}

unsigned websocket_peer_code(const struct websocket *ws)
{
    return ws->peer_code;
}

/* --- sending --- */

/* A client that leaves is no failure of the server's; a server that does is one to its client. */
static int gone(const struct websocket *ws, struct error *err)
{
    return error_set(err, ws->is_client ? ERROR_UNAVAILABLE : ERROR_CANCELLED,
                     "the WebSocket's peer has gone");
}

/* Writes it all. A frame that is left in the middle makes the rest of the connection useless. */
static int write_all(struct websocket *ws, struct iovec *iov, size_t count, struct error *err)
{
    while (count > 0) {
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
        ssize_t n = sendmsg(ws->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int rc =
                errno == EAGAIN ? wait_for(ws, EPOLLOUT, HTTP_BODY_TIMEOUT_MS, err) : gone(ws, err);
            if (rc == 0)
                continue;
            ws->broken = true;
            return -1;
        }
        size_t sent = (size_t)n;
        while (count > 0 && sent >= iov->iov_len) {
            sent -= iov->iov_len;
            iov++;
            count--;
        }
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + sent;
            iov->iov_len -= sent;
        }
    }
    return 0;
}

/* Clients mask what they send, each frame with a mask of its own. The data is not ours to change.
 */
static int write_masked(struct websocket *ws, enum ws_opcode opcode, const char *data, size_t len,
                        struct error *err)
{
    unsigned char piece[PIECE];
    uint8_t mask[4];
    if (getrandom(mask, sizeof(mask), 0) != (ssize_t)sizeof(mask))
        return error_sys(err, "a WebSocket mask");
    size_t used = ws_header_encode(piece, opcode, true, len, mask), at = 0;
    do {
        size_t n = len - at < sizeof(piece) - used ? len - at : sizeof(piece) - used;
        if (n > 0)
            memcpy(piece + used, data + at, n);
        ws_mask(piece + used, n, mask, at);
        struct iovec iov = {.iov_base = piece, .iov_len = used + n};
        if (write_all(ws, &iov, 1, err) != 0)
            return -1;
        at += n;
        used = 0;
    } while (at < len);
    return 0;
}

static int write_frame(struct websocket *ws, enum ws_opcode opcode, const void *data, size_t len,
                       struct error *err)
{
    if (ws->broken)
        return gone(ws, err);
    if (ws->is_client)
        return write_masked(ws, opcode, data, len, err);
    unsigned char head[WS_HEADER_MAX];
    struct iovec iov[2] = {
        {.iov_base = head, .iov_len = ws_header_encode(head, opcode, true, len, NULL)},
        {.iov_base = (void *)data, .iov_len = len},
    };
    return write_all(ws, iov, len > 0 ? 2 : 1, err);
}

static int lock(struct websocket *ws, struct error *err)
{
    while (ws->sending)
        if (co_cond_wait(ws->loop, &ws->unlocked, -1, err) != 0)
            return -1;
    ws->sending = true;
    return 0;
}

/* What was owed meanwhile goes first. */
static void unlock(struct websocket *ws)
{
    while (ws->pong_owed && !ws->broken) {
        ws->pong_owed = false;
        unsigned char payload[WS_CONTROL_MAX];
        size_t len = ws->pong_len;
        memcpy(payload, ws->pong, len);
        write_frame(ws, WS_PONG, payload, len, NULL);
    }
    ws->sending = false;
    co_cond_wake_all(&ws->unlocked);
}

static int send_frame(struct websocket *ws, enum ws_opcode opcode, const void *data, size_t len,
                      struct error *err)
{
    if (lock(ws, err) != 0)
        return -1;
    int rc = ws->close_sent ? error_set(err, ERROR_UNAVAILABLE, "the WebSocket is being closed")
                            : write_frame(ws, opcode, data, len, err);
    if (opcode == WS_CLOSE && rc == 0) {
        ws->close_sent = true;
        ws->pong_owed = false;
        co_cond_wake(&ws->readable); /* it has less time from now on */
    }
    unlock(ws);
    return rc;
}

int websocket_send(struct websocket *ws, enum ws_opcode opcode, const void *data, size_t len,
                   struct error *err)
{
    return send_frame(ws, opcode, data, len, err);
}

static size_t close_payload(unsigned char payload[WS_CONTROL_MAX], unsigned code,
                            const char *reason)
{
    size_t len = reason == NULL ? 0 : strnlen(reason, WS_REASON_MAX);
    while (len > 0 && ((unsigned char)reason[len] & 0xc0) == 0x80) /* not inside a character */
        len--;
    payload[0] = (unsigned char)(code >> 8);
    payload[1] = (unsigned char)code;
    if (len > 0)
        memcpy(payload + 2, reason, len);
    return len + 2;
}

int websocket_close(struct websocket *ws, enum ws_close_code code, const char *reason,
                    struct error *err)
{
    unsigned char payload[WS_CONTROL_MAX];
    if (ws->close_sent)
        return 0;
    return send_frame(ws, WS_CLOSE, payload, close_payload(payload, code, reason), err);
}

/* --- receiving --- */

/* Whether the peer takes what it is sent, as far as the kernel knows. While somebody is sending,
 * that one finds out (write_all()); after that it shows in what is still on the way. */
static bool takes_bytes(struct websocket *ws)
{
    int before = ws->on_the_way;
    if (ioctl(ws->fd, SIOCOUTQ, &ws->on_the_way) < 0)
        ws->on_the_way = 0;
    return ws->sending || ws->on_the_way < before;
}

/* Waits for bytes, with a ping when there are none for long. A peer that reads slowly gets to a
 * ping only behind all that was sent before it, so it has time for as long as it reads. */
static int wait_readable(struct websocket *ws, struct error *err)
{
    struct error why = {0};
    bool closing = ws->close_sent;
    int64_t timeout_ms = closing ? WEBSOCKET_CLOSE_MS : ws->ping_ms;
    if (wait_for(ws, EPOLLIN, timeout_ms, &why) == 0)
        return 0;
    if (why.code == ERROR_TIMEOUT && !closing && takes_bytes(ws))
        return 0;
    if (why.code != ERROR_TIMEOUT || closing || ws->pinged)
        return error_set(err, why.code, "%s",
                         why.code == ERROR_TIMEOUT ? "the WebSocket's peer does not answer"
                                                   : why.message);
    ws->pinged = true;
    return send_frame(ws, WS_PING, NULL, 0, err);
}

/* Up to len bytes from the socket. 0: its end. */
static ssize_t receive(struct websocket *ws, void *to, size_t len, struct error *err)
{
    for (;;) {
        ssize_t n = recv(ws->fd, to, len, MSG_DONTWAIT);
        if (n > 0)
            ws->pinged = false;
        if (n >= 0)
            return n;
        if (errno != EINTR && errno != EAGAIN)
            return gone(ws, err);
        if (errno == EAGAIN && wait_readable(ws, err) != 0)
            return -1;
    }
}

static ssize_t fill(struct websocket *ws, struct error *err)
{
    ws->in_start = ws->in_end = 0;
    ssize_t n = receive(ws, ws->in, ws->in_cap, err);
    if (n > 0)
        ws->in_end = (size_t)n;
    return n;
}

/* Tells the peer what it did wrong. */
static int refuse(struct websocket *ws, enum ws_close_code code, const char *problem,
                  struct error *err)
{
    websocket_close(ws, code, problem, NULL);
    return error_set(err, ERROR_INVALID_HTTP, "the WebSocket's peer sent %s", problem);
}

/* Takes some payload of the present frame to where it belongs. 0: the connection's end. */
static int take_payload(struct websocket *ws, struct error *err)
{
    struct ws_decoder *d = &ws->frames;
    size_t most = ws->in_end - ws->in_start;
    bool control = d->opcode >= WS_CLOSE;
    if (most == 0 && (control || d->left < IN_SIZE)) {
        ssize_t n = fill(ws, err);
        if (n <= 0)
            return (int)n;
        most = (size_t)n;
    }
    size_t want = d->left < PIECE * 4 ? (size_t)d->left : PIECE * 4;
    char *to = control ? (char *)ws->control + ws->control_len : buf_reserve(&ws->message, want);
    if (to == NULL && ws->message.refused)
        return refuse(ws, WS_CLOSE_TRY_AGAIN, "no memory for the message: try again later", err);
    if (to == NULL)
        return refuse(ws, WS_CLOSE_TOO_BIG, "a message that is too large", err);
    ssize_t n = most < want ? (ssize_t)most : (ssize_t)want;
    if (most > 0) {
        memcpy(to, ws->in + ws->in_start, (size_t)n);
        ws->in_start += (size_t)n;
    } else {
        n = receive(ws, to, want, err);
        if (n <= 0)
            return (int)n;
    }
    if (!ws_took(d, to, (size_t)n))
        return refuse(ws, d->close_code, d->problem, err);
    if (control)
        ws->control_len += (unsigned)n;
    else
        buf_commit(&ws->message, (size_t)n);
    return 1;
}

static int take_close(struct websocket *ws, struct error *err)
{
    unsigned code;
    if (!ws_close_parse(ws->control, ws->control_len, &code))
        return refuse(ws, WS_CLOSE_PROTOCOL, "a malformed Close", err);
    ws->peer_code = code;
    ws->ended = true;
    websocket_close(ws, code == WS_CLOSE_NO_CODE ? WS_CLOSE_NORMAL : code, NULL, NULL);
    return 0;
}

/* Only the latest ping needs an answer (RFC 6455, 5.5.3), so one place is enough. */
static int take_ping(struct websocket *ws, struct error *err)
{
    if (ws->close_sent)
        return 1;
    memcpy(ws->pong, ws->control, ws->control_len);
    ws->pong_len = ws->control_len;
    ws->pong_owed = true;
    if (ws->sending) /* whoever has the lock sends it */
        return 1;
    ws->sending = true;
    unlock(ws);
    return ws->broken ? gone(ws, err) : 1;
}

/* 1: read on, or *ret_whole; else as websocket_read(). */
static int take_frame(struct websocket *ws, bool *ret_whole, struct error *err)
{
    enum ws_opcode opcode = ws->frames.opcode;
    int rc = 1;
    if (opcode == WS_CLOSE)
        rc = take_close(ws, err);
    else if (opcode == WS_PING)
        rc = take_ping(ws, err);
    else if (opcode != WS_PONG)
        *ret_whole = ws->frames.fin;
    ws->control_len = 0;
    return rc;
}

static void forget_message(struct websocket *ws)
{
    if (ws->message.cap > KEEP_MAX)
        buf_release(&ws->message);
    else
        buf_clear(&ws->message);
}

static int read_message(struct websocket *ws, struct error *err)
{
    struct ws_decoder *d = &ws->frames;
    for (;;) {
        size_t used = 0;
        bool whole = false;
        int rc = 1;
        enum ws_step step = ws_decode(d, ws->in + ws->in_start, ws->in_end - ws->in_start, &used);
        ws->in_start += used;
        if (step == WS_BAD)
            return refuse(ws, d->close_code, d->problem, err);
        if (step == WS_DATA)
            rc = take_payload(ws, err);
        else if (step == WS_FRAME_END)
            rc = take_frame(ws, &whole, err);
        else
            rc = (int)fill(ws, err);
        if (rc == 0 && !ws->ended) /* its end, without a Close */
            return ws->close_sent ? 0 : gone(ws, err);
        if (rc <= 0 || whole)
            return rc < 0 ? -1 : rc;
    }
}

int websocket_read(struct websocket *ws, struct ws_message *ret_message, struct error *err)
{
    struct error why = {0};
    if (ws->ended)
        return 0;
    forget_message(ws);
    int rc;
    do { /* after our own Close, messages on their way are dropped */
        rc = read_message(ws, &why);
        if (rc > 0 && ws->close_sent)
            forget_message(ws);
    } while (rc > 0 && ws->close_sent);
    if (rc < 0 && why.code == ERROR_TIMEOUT && ws->close_sent)
        rc = 0;
    if (rc <= 0)
        ws->ended = true;
    if (rc < 0)
        return error_set(err, why.code, "%s", why.message);
    if (rc > 0)
        *ret_message = (struct ws_message){.text = ws->frames.opcode == WS_TEXT,
                                           .data = {ws->message.data, ws->message.len}};
    return rc > 0;
}

/* --- the end --- */

void websocket_free(struct websocket *ws)
{
    if (ws == NULL)
        return;
    if (!ws->close_sent && !ws->broken && !ws->sending && !ws->is_client) {
        unsigned char frame[WS_HEADER_MAX + WS_CONTROL_MAX], payload[WS_CONTROL_MAX];
        size_t len = close_payload(payload, WS_CLOSE_GOING_AWAY, NULL);
        size_t head = ws_header_encode(frame, WS_CLOSE, true, len, NULL);
        memcpy(frame + head, payload, len);
        send(ws->fd, frame, head + len, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    watch_stop(&ws->watch);
    if (ws->is_client)
        close(ws->fd);
    buf_release(&ws->message);
    free(ws->in);
    free(ws);
}
