/* SPDX-License-Identifier: Apache-2.0 */

/* The control socket: requests in frames, answered in order. One row per request. */

#include "egress/control.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "loop/net.h"

enum {
    CONNECTIONS_MAX = 16,
    WRITE_MS = 30 * 1000,
    OUT_MAX = 4 << 20, /* a whole log fits */
    READ_PIECE = 16 * 1024,
    RETRY_MS = 100,
    SETTLE_MS = 30 * 1000, /* longer than the warden is waited for */
};

struct control {
    struct egress *egress;
    uid_t user;
    unsigned connections;
    uint64_t epoch; /* the highest that a connection has named */
};

/* One connection of cellad's. */
struct client {
    struct control *control;
    int fd;
    uint64_t epoch;
};

struct request {
    struct egress *egress;
    struct client *client;
    uint32_t id;
    struct buf *out;
};

union message {
    struct egress_hello hello;
    struct egress_set set;
    struct egress_ref ref;
    struct egress_keep keep;
    struct egress_log_read log_read;
    struct egress_log_pull log_pull;
    struct egress_secrets secrets;
};

/* --- requests --- */

/* What a cellad that was killed has left unread must not be carried out after the next one has said
 * what holds. */
static int check_epoch(const struct control *control, uint64_t epoch, struct error *err)
{
    return epoch >= control->epoch
               ? 0
               : error_set(err, ERROR_UNAVAILABLE, "a later control connection has taken over");
}

static int take_hello(struct request *r, const union message *m, struct error *err)
{
    char resolvers[200];
    struct egress *egress = r->egress;
    if (check_epoch(r->client->control, m->hello.epoch, err) != 0)
        return -1;
    r->client->epoch = r->client->control->epoch = m->hello.epoch;
    resolver_describe(&egress->resolver, resolvers, sizeof(resolvers));
    const struct egress_about about = {
        .version = EGRESS_VERSION,
        .started_ms = egress->started_ms,
        .resolvers = resolvers,
        .sandboxes = HASH_CNT(by_id, egress->guests.ids),
        .connections = egress->guests.flow_count,
    };
    wire_encode(r->out, &egress_about_schema, r->id, &about);
    return 0;
}

static int done(struct request *r)
{
    wire_encode(r->out, &wire_ok_schema, r->id, NULL);
    return 0;
}

/* What was asked of the warden for the policy before has to be there before the warden is told of
 * this one, which makes the kernel forget it. Later it would outlive the policy. */
static int settle(struct egress *egress, struct guest *guest, struct error *err)
{
    int rc = 0;
    guest_ref(guest);
    while (rc == 0 && guest->outdated > 0)
        rc = co_cond_wait(egress->loop, &guest->settled, SETTLE_MS, err);
    guest_unref(guest);
    return rc;
}

static int take_set(struct request *r, const union message *m, struct error *err)
{
    if (guests_set(&r->egress->guests, &m->set, err) != 0)
        return -1;
    struct guest *guest = guests_find(&r->egress->guests, m->set.id);
    admitted_reset(&guest->admitted, loop_now(r->egress->loop));
    return settle(r->egress, guest, err) != 0 ? -1 : done(r);
}

static int take_secrets(struct request *r, const union message *m, struct error *err)
{
    return guests_set_secrets(&r->egress->guests, &m->secrets, err) != 0 ? -1 : done(r);
}

static int take_drop(struct request *r, const union message *m, struct error *err)
{
    struct guest *guest = guests_find(&r->egress->guests, m->ref.id);
    if (guest != NULL)
        guests_drop(&r->egress->guests, guest);
    return done(r);
}

static int take_keep(struct request *r, const union message *m, struct error *err)
{
    guests_keep(&r->egress->guests, m->keep.ids);
    return done(r);
}

static void write_entry(void *ctx, const struct egress_log_entry *entry)
{
    struct request *r = ctx;
    wire_encode(r->out, &egress_log_entry_schema, r->id, entry);
}

static int take_log_read(struct request *r, const union message *m, struct error *err)
{
    struct guest *guest = guests_find(&r->egress->guests, m->log_read.id);
    size_t max = m->log_read.max < EGRESS_LOG_MAX ? (size_t)m->log_read.max : EGRESS_LOG_MAX;
    if (guest == NULL)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "no sandbox %s has a network here",
                         m->log_read.id);
    log_ring_read(&guest->log, m->log_read.after, max, write_entry, r);
    return done(r);
}

/* Answers as soon as there is an entry to give. An empty answer takes EGRESS_LOG_WAIT_MS, so that a
 * collector that asks again at once costs nothing. */
static int take_log_pull(struct request *r, const union message *m, struct error *err)
{
    struct loop *loop = r->egress->loop;
    struct log_changes *changes = &r->egress->guests.changes;
    int64_t until = loop_now(loop) + EGRESS_LOG_WAIT_MS;
    while (!log_changes_has(changes, m->log_pull.after) && loop_now(loop) < until)
        if (co_cond_wait(loop, &changes->more, until - loop_now(loop), err) != 0 &&
            err->code != ERROR_TIMEOUT)
            return -1;
    log_changes_read(changes, m->log_pull.after, EGRESS_LOG_PULL_MAX, write_entry, r);
    return done(r);
}

static const struct {
    const struct wire_schema *schema;
    int (*take)(struct request *r, const union message *m, struct error *err);
} rows[] = {
    {&egress_hello_schema, take_hello},       {&egress_set_schema, take_set},
    {&egress_drop_schema, take_drop},         {&egress_keep_schema, take_keep},
    {&egress_log_read_schema, take_log_read}, {&egress_log_pull_schema, take_log_pull},
    {&egress_secrets_schema, take_secrets},
};

static int take_request(struct request *r, uint16_t type, struct slice payload, struct error *err)
{
    union message message;
    if (type != EGRESS_HELLO && check_epoch(r->client->control, r->client->epoch, err) != 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].schema->type == type)
            return wire_decode(rows[i].schema, payload, &message, err) != 0
                       ? -1
                       : rows[i].take(r, &message, err);
    return error_set(err, ERROR_NOT_IMPLEMENTED, "the egress process knows no request %u", type);
}

/* --- connections --- */

/* Answers every whole frame that is there. */
static int take_frames(struct client *client, struct buf *in, struct buf *out, struct error *err)
{
    struct frame_header header;
    struct slice payload;
    int rc;
    while ((rc = wire_next(in, &header, &payload, err)) == 1) {
        struct request request = {
            .egress = client->control->egress, .client = client, .id = header.id, .out = out};
        struct error why = {0};
        if (take_request(&request, header.type, payload, &why) != 0)
            wire_encode_error(out, header.id, &why);
        buf_consume(in, FRAME_HEADER_SIZE + header.length);
    }
    return rc != 0 ? -1 : buf_check(out, "an answer", err);
}

static int serve_client(struct client *client, struct buf *in, struct buf *out, struct error *err)
{
    struct loop *loop = client->control->egress->loop;
    for (;;) {
        char *to = buf_reserve(in, READ_PIECE);
        if (to == NULL)
            return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "a request is too long");
        ssize_t n = net_read(loop, client->fd, to, READ_PIECE, -1, err);
        if (n <= 0)
            return (int)n;
        buf_commit(in, (size_t)n);
        if (take_frames(client, in, out, err) != 0 ||
            net_write(loop, client->fd, out->data, out->len, WRITE_MS, err) != 0)
            return -1;
        buf_clear(out);
    }
}

static void client_main(void *arg)
{
    _cleanup_free_ struct client *client = arg;
    struct error err;
    _cleanup_buf_ struct buf in = BUF_INIT(WIRE_PAYLOAD_MAX + FRAME_HEADER_SIZE + READ_PIECE);
    _cleanup_buf_ struct buf out = BUF_INIT(OUT_MAX);
    if (serve_client(client, &in, &out, &err) != 0)
        log_warn("a control connection ends: %s", err.message);
    close(client->fd);
    client->control->connections--;
}

static bool is_welcome(const struct control *control, int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return control->connections < CONNECTIONS_MAX &&
           getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == 0 || peer.uid == control->user);
}

static void take_client(struct control *control, int fd)
{
    struct client *client = is_welcome(control, fd) ? malloc(sizeof(*client)) : NULL;
    if (client == NULL) {
        close(fd);
        return;
    }
    *client = (struct client){.control = control, .fd = fd};
    control->connections++;
    if (co_spawn(control->egress->loop, client_main, client, NULL, NULL) != 0) {
        control->connections--;
        close(fd);
        free(client);
    }
}

void control_serve(struct egress *egress, int fd, uid_t user)
{
    struct control control = {.egress = egress, .user = user};
    struct error err;
    for (;;) {
        int client;
        if (net_accept(egress->loop, fd, &client, &err) == 0)
            take_client(&control, client);
        else if (err.code == ERROR_CANCELLED || co_sleep(egress->loop, RETRY_MS, &err) != 0)
            break;
    }
    close(fd);
}
