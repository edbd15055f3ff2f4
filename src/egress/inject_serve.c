/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests of one connection, one after the other: each is read, checked to be for the host that
 * the connection is for, sent on with the secret, and its answer passed back. The connection to the
 * host is kept for the next request for as long as the host keeps it.
 */

#include "egress/inject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "egress/inject_body.h"
#include "egress/inject_head.h"
#include "egress/inject_side.h"
#include "egress/redact.h"
#include "loop/task.h"

enum {
    IDLE_MS = 75 * 1000,    /* between two requests */
    HEAD_MS = 15 * 1000,    /* between two pieces of a head */
    CONNECT_MS = 15 * 1000, /* for TLS, each way and step */
    BODY_MS = 60 * 1000,
    ANSWER_MS = 600 * 1000, /* until a host answers, and between two pieces of it: models think */
    HEAD_BYTES_MAX = 256 * 1024,
    PIECE_MAX = REDACT_HELD_MAX + REDACT_PIECE_MAX,
    INTERIM_MAX = 8,
    /* After so long without a byte from the host, what is held back goes on: of an answer, and of a
     * WebSocket, whose messages do not end with a line. Longer pauses inside a secret show what is
     * in front of them, so this is longer than networks take to send a lost packet again. */
    HELD_ANSWER_MS = 5000,
    HELD_SOCKET_MS = 50,
};

static const struct http_limits limits = {.headers_max = HTTP_HEADERS_MAX,
                                          .target_max = HTTP_TARGET_MAX};

struct work {
    struct inject_session *session;
    struct side client, host;
    bool host_used; /* it has served a request before */
    /* Of the request under way: */
    struct arena *arena;
    struct request_head request;
    bool upgrade;
    bool close;    /* nothing comes after its answer */
    bool answered; /* its answer has begun: no error can be told any more */
    struct redact_set *secrets;
    struct redact *redact; /* takes them out of answers */
};

static void cleanup_arena(struct arena **arena)
{
    arena_free(*arena);
}

static int fail(struct work *w, enum net_verdict verdict)
{
    w->session->verdict = verdict;
    return -1;
}

/* --- what goes wrong, told to the sandbox --- */

static void tell(struct work *w, const struct error *why)
{
    _cleanup_buf_ struct buf out = BUF_INIT(4096);
    char text[ERROR_MESSAGE_MAX + 32];
    struct error ignored;
    int status = why->code == ERROR_INVALID_HTTP && w->session->verdict == NET_REFUSED_UNLISTED
                     ? 421
                     : error_http_status(why->code);
    if (w->answered || why->code == ERROR_CANCELLED)
        return;
    w->answered = true;
    snprintf(text, sizeof(text), "cella: %s\n", why->message);
    buf_addf(&out,
             "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
             status, error_name(why->code), strlen(text), text);
    side_write(&w->client, out.data, out.len, HEAD_MS, &ignored);
}

/* Messages hold nothing that the host has said, so far. This keeps it so for sandbox and log. */
static void hide_secrets(struct work *w, struct error *why)
{
    _cleanup_buf_ struct buf out = BUF_INIT(sizeof(why->message));
    redact_reset(w->redact);
    redact_text(w->redact, slice_of(why->message), &out);
    if (!out.failed)
        snprintf(why->message, sizeof(why->message), "%s", out.data);
}

/* --- heads --- */

/* Reads until a head is whole; 0: the stream ended before its first byte. */
static int read_head(struct side *side, int64_t first_ms, struct slice *ret_head, struct error *err)
{
    struct head_scan scan = {0};
    for (;;) {
        struct slice have = side_bytes(side);
        enum head_state state = head_scan(&scan, have.data, have.len, &limits, err);
        if (state == HEAD_BAD)
            return -1;
        if (state == HEAD_WHOLE) {
            *ret_head = (struct slice){have.data + scan.start, scan.at - scan.start};
            side_took(side, scan.at);
            return 1;
        }
        int more = side_fill(side, have.len == 0 ? first_ms : HEAD_MS, err);
        if (more < 0)
            return -1;
        if (more == 0 && have.len == 0)
            return 0;
        if (more == 0)
            return error_set(err, ERROR_UPSTREAM_FAILED, "the connection ended in a header");
    }
}

static int read_request(struct work *w, struct error *err)
{
    struct slice head;
    int r = read_head(&w->client, IDLE_MS, &head, err);
    if (r <= 0) {
        w->answered = r < 0 && (err->code == ERROR_TIMEOUT || err->code == ERROR_UNAVAILABLE);
        return r < 0 ? fail(w, NET_REFUSED_MALFORMED) : 0;
    }
    if (request_parse(w->arena, head.data, head.len, &w->request, err) < 0)
        return fail(w, NET_REFUSED_MALFORMED);
    if (inject_check_request(w->session, &w->request, err) < 0)
        return fail(w,
                    err->code == ERROR_INVALID_HTTP ? NET_REFUSED_UNLISTED : NET_REFUSED_MALFORMED);
    w->upgrade = inject_wants_upgrade(&w->request);
    if (w->upgrade && !w->session->upgrades) {
        error_set(err, ERROR_FORBIDDEN,
                  "a request to %s carries a secret and may not become a WebSocket: allow it with "
                  "\"upgrade\": true in the sandbox's spec.network.headers",
                  w->session->host);
        return fail(w, NET_REFUSED_DENIED);
    }
    w->close = w->request.close;
    return 1;
}

/* --- the connection to the host --- */

static int check_secrets(struct work *w, struct error *err)
{
    const struct inject_header *header = NULL;
    while ((header = inject_next(w->session->inject, w->session->host, header)) != NULL) {
        if (header->value[0] == '\0') {
            error_set(err, ERROR_UPSTREAM_FAILED,
                      "the secret for %s is not there, or may not be sent to it", w->session->host);
            return fail(w, NET_FAILED_SECRET);
        }
    }
    return 0;
}

static int watch_for_secrets(struct work *w, struct error *err)
{
    const struct inject *inject = w->session->inject;
    const struct inject_header *header = NULL;
    struct slice *secrets = calloc(inject->count + 1, sizeof(*secrets));
    size_t count = 0;
    if (secrets == NULL)
        return error_sys(err, "a buffer for an answer");
    while ((header = inject_next(inject, w->session->host, header)) != NULL)
        secrets[count++] = slice_of(header->secret);
    int r = redact_set_new(secrets, count, &w->secrets, err);
    free(secrets);
    if (r == 0)
        w->redact = redact_new(w->secrets, err);
    return w->redact == NULL ? fail(w, NET_REFUSED_LIMIT) : 0;
}

static int connect_host(struct work *w, struct error *err)
{
    struct inject_session *s = w->session;
    int fd = -1;
    w->host_used = w->host.fd >= 0;
    if (w->host.fd >= 0)
        return 0;
    if (s->dial(s->ctx, &fd, err) < 0)
        return fail(w, NET_FAILED_CONNECT);
    if (side_open(&w->host, s->loop, fd, err) < 0) {
        close(fd);
        return fail(w, NET_FAILED_CONNECT);
    }
    w->host.count = s->from_sandbox;
    if (tls_connect(s->loop, fd, s->roots, s->host, CONNECT_MS, &w->host.tls, err) < 0) {
        error_prefix(err, "%s", s->host);
        return fail(w, NET_FAILED_TLS);
    }
    return 0;
}

/* --- bodies --- */

/* The request's body. What the host no longer wants to have is not sent: it has answered. */
static int send_body(struct work *w, bool *ret_refused, struct error *err)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const int64_t length = w->request.request.content_length;
    struct inject_body body = {.framing = w->request.chunked ? FRAMING_CHUNKED : FRAMING_LENGTH,
                               .left = w->request.chunked ? 0 : (uint64_t)length};
    *ret_refused = false;
    if (!w->request.chunked && length == 0)
        return 0;
    if (w->request.expects_continue &&
        side_write(&w->client, go_on, sizeof(go_on) - 1, HEAD_MS, err) < 0)
        return fail(w, NET_FAILED_CONNECT);
    for (;;) {
        struct slice piece;
        if (inject_body_next(&body, &w->client, BODY_MS, &piece, err) < 0)
            return fail(w, NET_REFUSED_MALFORMED);
        if (piece.len == 0)
            break;
        if (inject_body_pass(&w->host, piece, w->request.chunked, BODY_MS, err) < 0) {
            *ret_refused = err->code == ERROR_UNAVAILABLE;
            return *ret_refused ? 0 : fail(w, NET_FAILED_CONNECT);
        }
    }
    if (w->request.chunked && side_write(&w->host, "0\r\n\r\n", 5, BODY_MS, err) < 0)
        *ret_refused = true;
    return 0;
}

/* --- answers --- */

/* "200 OK" of "HTTP/1.1 200 OK": what is behind the number. */
static struct slice reason_of(struct slice head)
{
    const char *end = memchr(head.data, '\r', head.len);
    size_t line = end == NULL ? 0 : (size_t)(end - head.data);
    return line < 13 ? (struct slice){"", 0} : (struct slice){head.data + 13, line - 13};
}

static int read_answer(struct work *w, struct answer_head *ret_answer, struct slice *ret_reason,
                       struct error *err)
{
    for (int i = 0; i < INTERIM_MAX; i++) {
        struct slice head;
        int r = read_head(&w->host, ANSWER_MS, &head, err);
        if (r == 0)
            r = error_set(err, ERROR_UPSTREAM_FAILED, "%s has closed the connection",
                          w->session->host);
        if (r < 0 || answer_parse(w->arena, head.data, head.len, ret_answer, err) < 0)
            return fail(w, NET_FAILED_CONNECT);
        struct slice reason = reason_of(head);
        *ret_reason = (struct slice){arena_dup(w->arena, reason.data, reason.len), reason.len};
        if (ret_answer->status >= 200 || ret_answer->status == 101)
            return 0;
    }
    error_set(err, ERROR_UPSTREAM_FAILED, "%s does not come to an answer", w->session->host);
    return fail(w, NET_FAILED_CONNECT);
}

/* Waits for the next piece of an answer's body. Of a host that is silent for a while, what is held
 * back goes on first. The piece is empty at the end. */
static int next_answer_piece(struct work *w, struct inject_body *body, bool chunked,
                             struct slice *ret_piece, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(PIECE_MAX);
    if (redact_held(w->redact) > 0) {
        if (inject_body_next(body, &w->host, HELD_ANSWER_MS, ret_piece, err) == 0)
            return 0;
        if (err->code != ERROR_TIMEOUT)
            return -1;
        redact_release(w->redact, &out);
        if (buf_check(&out, "a piece of an answer", err) < 0 ||
            inject_body_pass(&w->client, (struct slice){out.data, out.len}, chunked, BODY_MS, err) <
                0)
            return -1;
    }
    return inject_body_next(body, &w->host, ANSWER_MS, ret_piece, err);
}

/* Both framings may be told, and the one that arrives is not the one that goes on. */
static int pass_answer_body(struct work *w, enum inject_framing from, enum inject_framing to,
                            const struct answer_head *answer, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(PIECE_MAX);
    struct inject_body body = {
        .framing = from, .left = from == FRAMING_LENGTH ? (uint64_t)answer->content_length : 0};
    const bool chunked = to == FRAMING_CHUNKED;
    struct slice piece;
    redact_reset(w->redact);
    do {
        if (next_answer_piece(w, &body, chunked, &piece, err) < 0)
            return fail(w, NET_FAILED_CONNECT);
        buf_clear(&out);
        redact_feed(w->redact, piece, &out);
        if (piece.len == 0)
            redact_end(w->redact, &out);
        if (buf_check(&out, "a piece of an answer", err) < 0 ||
            inject_body_pass(&w->client, (struct slice){out.data, out.len}, chunked, BODY_MS, err) <
                0)
            return fail(w, NET_FAILED_CONNECT);
    } while (piece.len > 0);
    if (chunked && side_write(&w->client, "0\r\n\r\n", 5, BODY_MS, err) < 0)
        return fail(w, NET_FAILED_CONNECT);
    return 0;
}

/* --- WebSockets --- */

struct direction {
    struct work *work;
    struct side *from, *to;
};

/* Out of the sandbox: as it is. */
static void go_up(void *arg)
{
    struct direction *d = arg;
    struct error err;
    for (;;) {
        struct slice have = side_bytes(d->from);
        side_took(d->from, have.len);
        if (side_write(d->to, have.data, have.len, BODY_MS, &err) < 0 ||
            side_fill(d->from, TUNNEL_IDLE_MS, &err) <= 0)
            return;
    }
}

/* Waits for more from the host, for no longer than anything may be held back. 0: nothing comes. */
static int fill_down(struct direction *d, bool *ret_late, struct error *err)
{
    bool held = redact_held(d->work->redact) > 0;
    int more = side_fill(d->from, held ? HELD_SOCKET_MS : TUNNEL_IDLE_MS, err);
    *ret_late = more < 0 && held && err->code == ERROR_TIMEOUT;
    return more;
}

/* Into the sandbox: without the secrets. */
static void go_down(struct direction *d)
{
    struct redact *redact = d->work->redact;
    _cleanup_buf_ struct buf out = BUF_INIT(PIECE_MAX);
    struct error err;
    bool late = false;
    int more = 1;
    redact_reset(redact);
    while (more > 0 || late) {
        struct slice have = side_bytes(d->from);
        side_took(d->from, have.len);
        buf_clear(&out);
        if (late)
            redact_release(redact, &out);
        redact_feed(redact, have, &out);
        if (out.failed || side_write(d->to, out.data, out.len, BODY_MS, &err) < 0)
            return;
        more = fill_down(d, &late, &err);
    }
    buf_clear(&out);
    redact_end(redact, &out);
    side_write(d->to, out.data, out.len, BODY_MS, &err);
}

/* Until either side ends: a WebSocket has its own goodbye. */
static int join(struct work *w, struct error *err)
{
    struct direction up = {w, &w->client, &w->host}, down = {w, &w->host, &w->client};
    struct task task = {0};
    if (task_start(w->session->loop, &task, go_up, &up, err) < 0)
        return fail(w, NET_REFUSED_LIMIT);
    go_down(&down);
    task_stop(&task);
    w->close = true;
    return 0;
}

/* --- one request --- */

static int send_request(struct work *w, bool *ret_refused, struct error *err)
{
    struct buf head = BUF_INIT(HEAD_BYTES_MAX);
    inject_write_request(&head, w->session, &w->request, w->upgrade);
    int r = buf_check(&head, "the request's header", err);
    if (r == 0)
        r = side_write(&w->host, head.data, head.len, HEAD_MS, err);
    explicit_bzero(head.data, head.len);
    buf_release(&head);
    if (r < 0)
        return fail(w, NET_FAILED_CONNECT);
    return send_body(w, ret_refused, err);
}

/* A connection that was kept may have been closed by the host meanwhile: a request without a body
 * that is safe to repeat gets another one. */
static bool is_worth_repeating(const struct work *w)
{
    const char *method = w->request.request.method;
    return w->host_used && w->request.request.content_length == 0 &&
           (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0);
}

static int ask(struct work *w, struct answer_head *ret_answer, struct slice *ret_reason,
               bool *ret_refused, struct error *err)
{
    for (;;) {
        if (connect_host(w, err) < 0)
            return -1;
        if (send_request(w, ret_refused, err) == 0 &&
            read_answer(w, ret_answer, ret_reason, err) == 0)
            return 0;
        side_close(&w->host, true);
        if (!is_worth_repeating(w) || err->code == ERROR_CANCELLED || err->code == ERROR_TIMEOUT)
            return -1;
    }
}

static int pass_answer(struct work *w, const struct answer_head *answer, struct slice reason,
                       bool refused, struct error *err)
{
    _cleanup_buf_ struct buf head = BUF_INIT(HEAD_BYTES_MAX);
    enum inject_framing from = inject_answer_framing(answer, w->request.is_head), to = from;
    if (inject_check_answer(w->session, answer, from, err) < 0)
        return fail(w, NET_FAILED_CONNECT);
    if (from == FRAMING_TO_END || from == FRAMING_CHUNKED)
        to = w->request.http10 ? FRAMING_TO_END : FRAMING_CHUNKED;
    w->close |= to == FRAMING_TO_END || refused;
    w->answered = true;
    inject_write_answer(&head, w->session, w->redact, answer, reason, to, w->close);
    if (buf_check(&head, "the answer's header", err) < 0 ||
        side_write(&w->client, head.data, head.len, BODY_MS, err) < 0 ||
        pass_answer_body(w, from, to, answer, err) < 0)
        return w->session->verdict != NET_ALLOWED ? -1 : fail(w, NET_FAILED_CONNECT);
    if (answer->close || from == FRAMING_TO_END || refused)
        side_close(&w->host, true);
    return 0;
}

/* 1: another one may follow; 0: none does. */
static int serve_request(struct work *w, struct error *err)
{
    _cleanup_(cleanup_arena) struct arena *arena = arena_new();
    struct answer_head answer;
    struct slice reason;
    bool refused = false;
    w->arena = arena;
    w->answered = false;
    int r = read_request(w, err);
    if (r <= 0)
        return r;
    if (check_secrets(w, err) < 0 || ask(w, &answer, &reason, &refused, err) < 0)
        return -1;
    if (answer.status == 101 && !w->upgrade) {
        error_set(err, ERROR_UPSTREAM_FAILED, "%s changes the protocol unasked", w->session->host);
        return fail(w, NET_FAILED_CONNECT);
    }
    if (answer.status == 101) {
        _cleanup_buf_ struct buf head = BUF_INIT(HEAD_BYTES_MAX);
        w->answered = true;
        if (w->session->upgraded != NULL)
            *w->session->upgraded = true;
        inject_write_answer(&head, w->session, w->redact, &answer, reason, FRAMING_NONE, false);
        if (side_write(&w->client, head.data, head.len, BODY_MS, err) < 0)
            return fail(w, NET_FAILED_CONNECT);
        return join(w, err);
    }
    if (pass_answer(w, &answer, reason, refused, err) < 0)
        return -1;
    return !w->close;
}

static int open_client(struct work *w, struct error *err)
{
    struct inject_session *s = w->session;
    if (side_open(&w->client, s->loop, s->fd, err) < 0)
        return fail(w, NET_REFUSED_LIMIT);
    w->client.count = s->to_sandbox;
    if (s->tls) {
        if (tls_accept(s->loop, s->fd, s->early, s->inject->ca, s->host, CONNECT_MS, &w->client.tls,
                       err) < 0) {
            error_prefix(err, "TLS from the sandbox");
            return fail(w, NET_FAILED_TLS);
        }
        return 0;
    }
    if (s->early.len > SIDE_BUFFER) {
        error_set(err, ERROR_HEADERS_TOO_LARGE, "the header is too large");
        return fail(w, NET_REFUSED_MALFORMED);
    }
    memcpy(w->client.data, s->early.data == NULL ? "" : s->early.data, s->early.len);
    w->client.end = s->early.len;
    return 0;
}

int inject_serve(struct inject_session *session, struct error *err)
{
    struct work w = {.session = session, .client.fd = -1, .host.fd = -1};
    struct error why, ignored;
    session->verdict = NET_ALLOWED;
    int r = watch_for_secrets(&w, &why);
    if (r == 0)
        r = open_client(&w, &why);
    if (r == 0) {
        do
            r = serve_request(&w, &why);
        while (r > 0);
        if (r < 0) {
            hide_secrets(&w, &why);
            tell(&w, &why);
        }
        if (w.client.tls != NULL)
            tls_end(w.client.tls, HEAD_MS, &ignored);
    }
    side_close(&w.host, true);
    side_close(&w.client, false);
    redact_free(w.redact);
    redact_set_free(w.secrets);
    return r < 0 ? error_set(err, why.code, "%s", why.message) : 0;
}
