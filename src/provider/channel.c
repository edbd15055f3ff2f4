/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A channel pairs answers with the coroutines that wait for them. It is the only code in cellad
 * that reads frames from several askers' answers on one stream, for wardens and agents alike, so
 * that the rules for a hostile other end are written once.
 */

#include "provider/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/co.h"
#include "loop/net.h"
#include "observe/span.h"
#include "wire/messages.h"

enum {
    READ_CHUNK = 64 * 1024,
    WRITE_TIMEOUT_MS = 30 * 1000,
    OWED_MAX = 64 * 1024,
};

struct frame_copy {
    struct frame_copy *next;
    uint16_t type;
    struct slice payload;
};

/* One request under way. Lives on the caller's stack; or, when nobody waits for it, on the heap. */
struct call {
    struct call *next;
    struct question *question; /* that it is of; NULL: somebody waits */
    uint32_t id;
    uint16_t item_type; /* what is collected until the end; 0: the first frame is the end */
    size_t max_items, items;
    size_t bytes; /* that have come */
    struct arena *arena;
    struct frame_copy *first, **last;
    bool done;
    bool failed;
    bool refused; /* … by us: the other end is to send no more */
    struct error error;
    struct co_cond answered;
};

struct question {
    struct call call;
    const struct wire_schema *answer;
    channel_told *told;
    void *ctx;
};

struct channel {
    struct loop *loop;
    struct watch watch;
    struct channel_events events;
    int fd; /* -1 when closed */
    struct buf in;
    struct call *calls;
    unsigned call_count, question_count;
    uint32_t next_id;
    struct buf owed; /* cancellations that are not sent whole yet: they go before all else */
    bool writing;    /* one writer at a time: a frame may take several writes */
    struct co_cond write_turn;
    unsigned users; /* coroutines inside channel_call() */
    bool freed;
};

static void channel_release(struct channel *c)
{
    if (!c->freed || c->users > 0)
        return;
    buf_release(&c->in);
    buf_release(&c->owed);
    free(c);
}

static void finish(struct call *call, const struct error *why)
{
    if (call->done)
        return;
    call->done = true;
    if (why != NULL) {
        call->failed = true;
        call->error = *why;
    }
    co_cond_wake_all(&call->answered);
}

static int check_last(const struct frame_copy *frame, uint16_t wanted, struct error *err)
{
    if (frame->type == WIRE_ERROR)
        return wire_take_error(frame->payload, err);
    if (frame->type != wanted)
        return error_set(err, ERROR_UNAVAILABLE, "unexpected answer of type %u", frame->type);
    return 0;
}

static void unlink_call(struct channel *c, const struct call *call)
{
    struct call **at = &c->calls;
    while (*at != NULL && *at != call)
        at = &(*at)->next;
    if (*at != NULL)
        *at = call->next;
}

/* why NULL: its answer is here. */
static void answer_question(struct channel *c, struct question *q, const struct error *why)
{
    struct arena *arena = q->call.arena;
    const struct frame_copy *frame = q->call.first;
    void *msg = why == NULL ? arena_alloc(arena, q->answer->size) : NULL;
    struct error err;
    unlink_call(c, &q->call);
    c->question_count--;
    if (why == NULL && (check_last(frame, q->answer->type, &err) < 0 ||
                        wire_decode(q->answer, frame->payload, msg, &err) < 0))
        why = &err;
    q->told(q->ctx, why == NULL ? msg : NULL, why);
    arena_free(arena);
    free(q);
}

static void close_channel(struct channel *c, const struct error *why)
{
    if (c->fd < 0)
        return;
    watch_stop(&c->watch);
    close(steal_fd(&c->fd));
    for (struct call *call = c->calls, *next; call != NULL; call = next) {
        next = call->next;
        if (call->question != NULL)
            answer_question(c, call->question, why);
        else
            finish(call, why);
    }
    co_cond_wake_all(&c->write_turn);
    if (!c->freed && c->events.closed != NULL)
        c->events.closed(c->events.ctx);
}

/* Whether so many bytes more may be held for a call: an agent can send any number of them. */
static int admit_frame(struct call *call, size_t len, struct error *err)
{
    call->bytes += len;
    if (call->bytes > CHANNEL_ANSWER_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "the sandbox's answer is larger than the %d MiB that one may have",
                         CHANNEL_ANSWER_MAX >> 20);
    return call->arena == NULL ? 0 : arena_check(call->arena, len, err);
}

static void refuse_call(struct channel *c, struct call *call, const struct error *why)
{
    if (call->question != NULL) {
        answer_question(c, call->question, why);
        return;
    }
    call->refused = true;
    finish(call, why);
}

static int take_frame(struct channel *c, const struct frame_header *header, struct slice payload,
                      struct error *err)
{
    if (header->id == 0) {
        if (c->events.event == NULL)
            return error_set(err, ERROR_UNAVAILABLE, "unexpected event %u", header->type);
        c->events.event(c->events.ctx, header, payload);
        return 0;
    }
    struct call *call = c->calls;
    while (call != NULL && call->id != header->id)
        call = call->next;
    if (call == NULL || call->done) {
        /* An answer to a call that was given up is fine; one to a call never made is not. */
        if (header->id >= c->next_id)
            return error_set(err, ERROR_UNAVAILABLE, "answer to a request that was never made");
        return 0;
    }
    if (call->items++ > call->max_items)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "more than %zu items", call->max_items);

    struct error why;
    if (admit_frame(call, payload.len, &why) < 0) {
        refuse_call(c, call, &why);
        return 0;
    }
    if (call->arena == NULL) /* a question's: it may be open for days */
        call->arena = arena_new();
    struct frame_copy *copy = arena_alloc(call->arena, sizeof(*copy));
    copy->type = header->type;
    copy->payload.data = arena_dup(call->arena, payload.data, payload.len);
    copy->payload.len = payload.len;
    *call->last = copy;
    call->last = &copy->next;
    if (call->question != NULL)
        answer_question(c, call->question, NULL);
    else if (header->type != call->item_type)
        finish(call, NULL);
    return 0;
}

static int take_frames(struct channel *c, struct error *err)
{
    size_t used = 0;
    int got;
    do {
        struct frame_header header;
        struct slice payload;
        struct buf rest = {.data = c->in.data + used, .len = c->in.len - used};
        got = wire_next(&rest, &header, &payload, err);
        if (got > 0) {
            if (take_frame(c, &header, payload, err) < 0)
                return -1;
            used += FRAME_HEADER_SIZE + header.length;
        }
    } while (got > 0 && c->fd >= 0);
    buf_consume(&c->in, used);
    if (c->in.len == 0)
        buf_release(&c->in);
    return got < 0 ? -1 : 0;
}

static void channel_readable(struct watch *watch, uint32_t events)
{
    struct channel *c = container_of(watch, struct channel, watch);
    struct error err = {0};

    char *to = buf_reserve(&c->in, READ_CHUNK);
    if (to == NULL) {
        error_set(&err, ERROR_UNAVAILABLE, "frame too large");
        close_channel(c, &err);
        return;
    }
    ssize_t n = read(c->fd, to, READ_CHUNK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        if (n < 0)
            error_sys_as(&err, ERROR_UNAVAILABLE, "reading from the sandbox");
        else
            error_set(&err, ERROR_UNAVAILABLE, "the connection was closed at the other end");
        close_channel(c, &err);
        return;
    }
    buf_commit(&c->in, (size_t)n);
    if (take_frames(c, &err) < 0)
        close_channel(c, &err);
}

struct channel *channel_new(struct loop *loop, int fd, const struct channel_events *events,
                            struct error *err)
{
    struct channel *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        error_sys(err, "allocating a channel");
        close(fd);
        return NULL;
    }
    c->loop = loop;
    c->fd = fd;
    c->events = *events;
    c->next_id = 1;
    buf_init(&c->in, WIRE_PAYLOAD_MAX + FRAME_HEADER_SIZE + READ_CHUNK);
    buf_init(&c->owed, OWED_MAX);
    if (watch_start(loop, &c->watch, fd, EPOLLIN, channel_readable, err) < 0) {
        close(fd);
        free(c);
        return NULL;
    }
    return c;
}

void channel_free(struct channel *c)
{
    if (c == NULL)
        return;
    c->freed = true;
    struct error err;
    error_set(&err, ERROR_UNAVAILABLE, "the connection was closed");
    close_channel(c, &err);
    channel_release(c);
}

bool channel_is_open(const struct channel *c)
{
    return c->fd >= 0;
}

unsigned channel_calls(const struct channel *c)
{
    return c->call_count;
}

unsigned channel_questions(const struct channel *c)
{
    return c->question_count;
}

/* Sends cancellations as far as they go without waiting: who gives a call up cannot wait. */
static void flush_owed(struct channel *c)
{
    if (c->writing || c->fd < 0 || c->owed.len == 0)
        return;
    ssize_t n = send(c->fd, c->owed.data, c->owed.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        buf_consume(&c->owed, (size_t)n);
}

static void tell_cancelled(struct channel *c, uint32_t id)
{
    if (c->events.cancel == NULL || c->fd < 0)
        return;
    wire_encode(&c->owed, c->events.cancel, id, NULL);
    if (!c->owed.failed) {
        flush_owed(c);
        return;
    }
    /* So many that the other end does not read: it is as good as gone. */
    struct error why;
    error_set(&why, ERROR_UNAVAILABLE, "the sandbox's agent does not read its requests");
    close_channel(c, &why);
}

/* Most frames fit into the socket's buffer at once, without waiting for the turn or the loop. */
static int send_frames(struct channel *c, const struct buf *frames, struct error *err)
{
    while (c->writing && c->fd >= 0)
        if (co_cond_wait(c->loop, &c->write_turn, WRITE_TIMEOUT_MS, err) < 0)
            return -1;
    if (c->fd < 0)
        return error_set(err, ERROR_UNAVAILABLE, "the connection is closed");
    c->writing = true;
    struct buf owed = c->owed;
    buf_init(&c->owed, OWED_MAX);
    int rc = 0;
    if (owed.len > 0)
        rc = net_write(c->loop, c->fd, owed.data, owed.len, WRITE_TIMEOUT_MS, err);
    if (rc == 0)
        rc = net_write(c->loop, c->fd, frames->data, frames->len, WRITE_TIMEOUT_MS, err);
    buf_release(&owed);
    c->writing = false;
    flush_owed(c);
    co_cond_wake(&c->write_turn);
    if (rc < 0) {
        /* Half a frame may be out: nothing sensible can follow it. */
        struct error why;
        error_set(&why, ERROR_UNAVAILABLE, "a request could not be sent whole");
        close_channel(c, &why);
    }
    return rc;
}

/* Its number, its frame, and its place among those that wait for an answer. */
static int begin_call(struct channel *c, struct call *call, const struct wire_schema *schema,
                      const void *msg, struct buf *out, struct error *err)
{
    if (c->next_id == 0)
        c->next_id = 1;
    call->id = c->next_id++;
    call->last = &call->first;
    wire_encode(out, schema, call->id, msg);
    if (buf_check(out, "request", err) < 0)
        return -1;
    call->next = c->calls;
    c->calls = call;
    return 0;
}

static int converse(struct channel *c, struct call *call, const struct wire_schema *schema,
                    const void *msg, int64_t timeout_ms, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(WIRE_PAYLOAD_MAX + FRAME_HEADER_SIZE);
    if (begin_call(c, call, schema, msg, &out, err) < 0)
        return -1;
    c->call_count++;
    c->users++;
    int rc = send_frames(c, &out, err);
    bool sent = rc == 0;
    while (rc == 0 && !call->done)
        rc = co_cond_wait(c->loop, &call->answered, timeout_ms, err);
    unlink_call(c, call);
    c->call_count--;
    if (sent && (!call->done || call->refused))
        tell_cancelled(c, call->id);
    c->users--;
    channel_release(c);
    if (rc == 0 && call->failed) {
        if (err != NULL)
            *err = call->error;
        return -1;
    }
    return rc;
}

/* Measured, and a step of the request's trace. The channel may be gone afterwards. */
static int exchange(struct channel *c, struct call *call, const struct wire_schema *schema,
                    const void *msg, int64_t timeout_ms, struct error *err)
{
    struct loop *loop = c->loop;
    enum meter_histogram meter = c->events.meter;
    uint64_t begun = meter_now();
    struct span span;
    span_begin(co_errand(loop), &span, schema->name);
    int rc = converse(c, call, schema, msg, timeout_ms, err);
    if (meter != 0)
        meter_took(loop_meters(loop), meter, begun);
    span_end(co_errand(loop), &span, SPAN_CLIENT, rc < 0 ? err : NULL, NULL, 0);
    return rc;
}

int channel_call(struct channel *c, const struct wire_schema *schema, const void *msg,
                 const struct wire_schema *answer, struct arena *arena, void *ret_msg,
                 int64_t timeout_ms, struct error *err)
{
    struct call call = {.arena = arena, .max_items = 1};
    if (exchange(c, &call, schema, msg, timeout_ms, err) < 0)
        return -1;
    if (check_last(call.first, answer->type, err) < 0)
        return -1;
    return wire_decode(answer, call.first->payload, ret_msg, err);
}

int channel_list(struct channel *c, const struct wire_schema *schema, const void *msg,
                 const struct wire_schema *item, struct arena *arena, size_t max_items,
                 int (*each)(void *ctx, const void *item, struct error *err), void *ctx,
                 int64_t timeout_ms, struct error *err)
{
    struct call call = {.arena = arena, .item_type = item->type, .max_items = max_items + 1};
    if (exchange(c, &call, schema, msg, timeout_ms, err) < 0)
        return -1;
    void *decoded = arena_alloc(arena, item->size);
    for (struct frame_copy *frame = call.first; frame != NULL; frame = frame->next) {
        if (frame->next == NULL)
            return check_last(frame, WIRE_OK, err);
        if (wire_decode(item, frame->payload, decoded, err) < 0 || each(ctx, decoded, err) < 0)
            return -1;
    }
    return error_set(err, ERROR_UNAVAILABLE, "no answer");
}

static int send_question(struct channel *c, struct question *q, const struct wire_schema *schema,
                         const void *msg, struct error *err)
{
    _cleanup_buf_ struct buf out = BUF_INIT(WIRE_PAYLOAD_MAX + FRAME_HEADER_SIZE);
    if (c->question_count >= CHANNEL_QUESTIONS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d questions are open already",
                         CHANNEL_QUESTIONS_MAX);
    if (begin_call(c, &q->call, schema, msg, &out, err) < 0)
        return -1;
    c->question_count++;
    uint32_t id = q->call.id;
    c->users++;
    struct error why;
    int rc = send_frames(c, &out, &why);
    const struct call *call = c->calls;
    while (call != NULL && call->id != id)
        call = call->next;
    if (rc < 0 && call != NULL) /* else it was answered, or ended with the channel, meanwhile */
        answer_question(c, call->question, &why);
    c->users--;
    channel_release(c);
    return 0;
}

void channel_ask(struct channel *c, const struct wire_schema *schema, const void *msg,
                 const struct wire_schema *answer, channel_told *told, void *ctx)
{
    struct error err;
    struct question *q = calloc(1, sizeof(*q));
    if (q == NULL)
        abort();
    *q = (struct question){
        .call = {.question = q, .max_items = 1},
        .answer = answer,
        .told = told,
        .ctx = ctx,
    };
    if (send_question(c, q, schema, msg, &err) == 0)
        return;
    told(ctx, NULL, &err);
    free(q);
}
