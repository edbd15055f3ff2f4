/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What can be asked of the warden: one row per message. Requests that end a sandbox are answered
 * when it has ended, by a waiter; the loop goes on meanwhile.
 */

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/warden.h"

enum { GRACE_MAX_MS = 10 * 60 * 1000 };

union request {
    struct warden_hello hello;
    struct plan plan;
    struct warden_stop stop;
    struct warden_ref ref;
    struct warden_stats stats;
    struct warden_clone clone;
    struct warden_update update;
    struct warden_fits fits;
    struct warden_socket socket;
    struct warden_helper helper;
    struct warden_delegate delegate;
    struct warden_net_set net_set;
    struct warden_net_admit net_admit;
    struct warden_net_listen net_listen;
    struct warden_net_count net_count;
};

/* ---- answers ---- */

static void send_message(struct connection *connection, const struct wire_schema *schema,
                         uint32_t id, const void *message)
{
    wire_encode(&connection->out, schema, id, message);
    connection_flush(connection);
}

struct waiter *waiter_new(struct waiter from)
{
    struct waiter *waiter = malloc(sizeof(*waiter));
    if (waiter != NULL) {
        *waiter = from;
        waiter->next = NULL;
    }
    return waiter;
}

static void answer_one(struct warden *warden, const struct waiter *waiter,
                       const struct wire_schema *schema, const void *message,
                       const struct error *err)
{
    struct connection *connection = connection_find(warden, waiter->connection);
    if (connection == NULL)
        return;
    if (err != NULL)
        wire_encode_error(&connection->out, waiter->request, err);
    else
        wire_encode(&connection->out, schema, waiter->request, message);
    connection_flush(connection);
}

void answer_waiters(struct warden *warden, struct waiter **waiters, const struct error *err)
{
    while (*waiters != NULL) {
        struct waiter *waiter = *waiters;
        *waiters = waiter->next;
        answer_one(warden, waiter, &wire_ok_schema, NULL, err);
        free(waiter);
    }
}

void answer_started(struct sandbox *sandbox)
{
    char address[NET_ADDRESS_SIZE], address6[SIX_TEXT];
    struct warden_started started = {.pid = (uint64_t)sandbox->pid,
                                     .start_time = sandbox->start_time,
                                     .fresh = sandbox->fresh,
                                     .address = net_address(sandbox->warden, sandbox, address),
                                     .address6 = net_address6(sandbox->warden, sandbox, address6)};
    for (struct waiter *waiter; (waiter = sandbox->starters) != NULL; free(waiter)) {
        started.joined = waiter->joined;
        sandbox->starters = waiter->next;
        answer_one(sandbox->warden, waiter, &warden_started_schema, &started, NULL);
    }
}

void announce_exit(struct sandbox *sandbox)
{
    const struct warden_exited exited = {.id = sandbox->id, .oom = sandbox->oom};
    for (struct connection *c = sandbox->warden->connections; c != NULL; c = c->next)
        if (!c->egress)
            send_message(c, &warden_exited_schema, 0, &exited);
}

/* ---- requests ---- */

static int handle_hello(struct connection *connection, uint32_t id, const union request *request,
                        struct error *err)
{
    const struct warden *warden = connection->warden;
    if (connection_greet(connection, request->hello.epoch, err) < 0)
        return -1;
    char gateway[INET_ADDRSTRLEN];
    const struct in_addr in = {.s_addr = htonl(warden->net.router.gateway)};
    const struct warden_about about = {
        .version = WARDEN_VERSION,
        .agent_version = AGENT_VERSION,
        .instance = warden->instance,
        .storage = warden->storage.description,
        .cgroups = warden->cgroups.backend->name,
        .network = warden->net.on ? NULL : warden->net.why,
        .gateway = warden->net.on ? inet_ntop(AF_INET, &in, gateway, sizeof(gateway)) : NULL};
    send_message(connection, &warden_about_schema, id, &about);
    return 0;
}

static int handle_start(struct connection *connection, uint32_t id, const union request *request,
                        struct error *err)
{
    struct waiter from = {.connection = connection->number, .request = id};
    if (connection->warden->stopping)
        return error_set(err, ERROR_UNAVAILABLE, "the server is shutting down");
    return sandbox_start(connection->warden, &request->plan, from, err);
}

int waiter_add(struct waiter **waiters, const struct connection *connection, uint32_t id,
               struct error *err)
{
    struct waiter *waiter =
        waiter_new((struct waiter){.connection = connection->number, .request = id});
    if (waiter == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
    waiter->next = *waiters;
    *waiters = waiter;
    return 0;
}

static int handle_stop(struct connection *connection, uint32_t id, const union request *request,
                       struct error *err)
{
    struct sandbox *sandbox = sandbox_find(connection->warden, request->stop.id);
    if (sandbox == NULL) {
        send_message(connection, &wire_ok_schema, id, NULL);
        return 0;
    }
    if (waiter_add(&sandbox->waiters, connection, id, err) < 0)
        return -1;
    uint64_t grace = request->stop.grace_ms;
    sandbox_end(sandbox, grace > GRACE_MAX_MS ? GRACE_MAX_MS : grace);
    return 0;
}

static int handle_remove(struct connection *connection, uint32_t id, const union request *request,
                         struct error *err)
{
    struct warden *warden = connection->warden;
    if (!plan_id_valid(request->ref.id))
        return error_set(err, ERROR_INVALID_NAME, "not a sandbox id");
    struct sandbox *sandbox = sandbox_find(warden, request->ref.id);
    if (sandbox == NULL)
        sandbox = sandbox_new(warden, request->ref.id); /* of one that does not run, to end it */
    if (sandbox == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
    if (waiter_add(&sandbox->waiters, connection, id, err) < 0)
        return -1;
    sandbox->remove = true;
    sandbox_end(sandbox, 0);
    return 0;
}

struct list_answer {
    struct connection *connection;
    uint32_t id;
};

static int list_idle(const char *name, void *arg)
{
    const struct list_answer *list = arg;
    if (plan_id_valid(name) && sandbox_find(list->connection->warden, name) == NULL) {
        const struct warden_entry entry = {.id = name};
        wire_encode(&list->connection->out, &warden_entry_schema, list->id, &entry);
    }
    return 0;
}

/* What runs, what has files, and what is going to have them: whoever asked for a copy may have died
 * before anybody recorded what it is for. */
static int handle_list(struct connection *connection, uint32_t id, const union request *request,
                       struct error *err)
{
    struct warden *warden = connection->warden;
    struct list_answer list = {.connection = connection, .id = id};
    for (const struct sandbox *s = warden->sandboxes; s != NULL; s = s->by_id.next) {
        char address[NET_ADDRESS_SIZE], address6[SIX_TEXT];
        const struct warden_entry entry = {.id = s->id,
                                           .address = net_address(warden, s, address),
                                           .address6 = net_address6(warden, s, address6),
                                           .running = s->state == SANDBOX_RUNNING,
                                           .pid = (uint64_t)s->pid,
                                           .start_time = s->start_time,
                                           .paused = s->paused};
        wire_encode(&connection->out, &warden_entry_schema, id, &entry);
    }
    if (copy_each(warden, list_idle, &list) < 0 ||
        storage_each(&warden->storage, list_idle, &list, err) < 0)
        return -1;
    send_message(connection, &wire_ok_schema, id, NULL);
    return 0;
}

static int handle_stats(struct connection *connection, uint32_t id, const union request *request,
                        struct error *err)
{
    stats_answer(connection, id, &request->stats);
    return 0;
}

static int handle_machine(struct connection *connection, uint32_t id, const union request *request,
                          struct error *err)
{
    machine_answer(connection, id);
    return 0;
}

static int handle_pause(struct connection *connection, uint32_t id, const union request *request,
                        struct error *err)
{
    return pause_request(connection, id, &request->ref, err);
}

static int handle_resume(struct connection *connection, uint32_t id, const union request *request,
                         struct error *err)
{
    return resume_request(connection, id, &request->ref, err);
}

static int handle_clone(struct connection *connection, uint32_t id, const union request *request,
                        struct error *err)
{
    return copy_request(connection, id, &request->clone, err);
}

static int handle_update(struct connection *connection, uint32_t id, const union request *request,
                         struct error *err)
{
    return resize_request(connection, id, &request->update, err);
}

static int handle_fits(struct connection *connection, uint32_t id, const union request *request,
                       struct error *err)
{
    return fits_request(connection, id, &request->fits, err);
}

static int handle_claim(struct connection *connection, uint32_t id, const union request *request,
                        struct error *err)
{
    if (sandbox_claim(connection->warden, &request->plan, err) < 0)
        return -1;
    send_message(connection, &wire_ok_schema, id, NULL);
    return 0;
}

static int handle_socket(struct connection *connection, uint32_t id, const union request *request,
                         struct error *err)
{
    static const int families[] = {
        [SOCKET_UNIX] = AF_UNIX, [SOCKET_IPV4] = AF_INET, [SOCKET_IPV6] = AF_INET6};
    uint64_t family = request->socket.family;
    struct sandbox *sandbox = sandbox_find(connection->warden, request->socket.id);
    _cleanup_buf_ struct buf frame = BUF_INIT(FRAME_HEADER_SIZE);
    _cleanup_fd_ int fd = -1;
    if (family >= ARRAY_LEN(families) || families[family] == AF_UNSPEC)
        return error_set(err, ERROR_INVALID_ARGUMENT, "no such kind of socket");
    if (sandbox == NULL)
        return error_set(err, ERROR_NOT_RUNNING, "the sandbox does not run");
    if (sandbox_socket(sandbox, families[family], &fd, err) < 0)
        return -1;
    wire_encode(&frame, &wire_ok_schema, id, NULL);
    return connection_send_fd(connection, &frame, fd, err);
}

static int handle_helper(struct connection *connection, uint32_t id, const union request *request,
                         struct error *err)
{
    _cleanup_buf_ struct buf frame = BUF_INIT(FRAME_HEADER_SIZE);
    _cleanup_fd_ int fd = -1;
    if (cgroup_open_helper(&connection->warden->cgroups, request->helper.group,
                           request->helper.part, &fd, err) < 0)
        return -1;
    wire_encode(&frame, &wire_ok_schema, id, NULL);
    return connection_send_fd(connection, &frame, fd, err);
}

static int handle_delegate(struct connection *connection, uint32_t id, const union request *request,
                           struct error *err)
{
    return delegate_request(connection, id, &request->delegate, err);
}

static int handle_net_set(struct connection *connection, uint32_t id, const union request *request,
                          struct error *err)
{
    const struct warden_net_set *set = &request->net_set;
    const struct net_wish wish = {.mode = set->network,
                                  .flags = set->network_flags,
                                  .in_bytes = set->network_in_bytes,
                                  .out_bytes = set->network_out_bytes,
                                  .rules = set->network_rules};
    struct sandbox *sandbox = sandbox_find(connection->warden, set->id);
    if (net_wish_check(&wish, err) < 0)
        return -1;
    if (sandbox == NULL)
        return error_set(err, ERROR_NOT_RUNNING, "the sandbox does not run");
    if (net_change(connection->warden, sandbox, &wish, err) < 0)
        return -1;
    send_message(connection, &wire_ok_schema, id, NULL);
    return 0;
}

static int handle_net_admit(struct connection *connection, uint32_t id,
                            const union request *request, struct error *err)
{
    if (net_admit(connection->warden, &request->net_admit, err) < 0)
        return -1;
    send_message(connection, &wire_ok_schema, id, NULL);
    return 0;
}

static int handle_net_listen(struct connection *connection, uint32_t id,
                             const union request *request, struct error *err)
{
    _cleanup_buf_ struct buf frame = BUF_INIT(FRAME_HEADER_SIZE);
    _cleanup_fd_ int fd = -1;
    if (net_listen_socket(connection->warden, request->net_listen.which, &fd, err) < 0)
        return -1;
    wire_encode(&frame, &wire_ok_schema, id, NULL);
    return connection_send_fd(connection, &frame, fd, err);
}

static int handle_net_count(struct connection *connection, uint32_t id,
                            const union request *request, struct error *err)
{
    struct warden_net_counted counted;
    if (net_count(connection->warden, &request->net_count, &counted, err) < 0)
        return -1;
    send_message(connection, &warden_net_counted_schema, id, &counted);
    return 0;
}

static const struct {
    const struct wire_schema *schema;
    int (*handle)(struct connection *connection, uint32_t id, const union request *request,
                  struct error *err);
    bool egress; /* for the egress process, and nobody else */
} rows[] = {
    {&warden_hello_schema, handle_hello},
    {&warden_start_schema, handle_start},
    {&warden_stop_schema, handle_stop},
    {&warden_remove_schema, handle_remove},
    {&warden_pause_schema, handle_pause},
    {&warden_resume_schema, handle_resume},
    {&warden_list_schema, handle_list},
    {&warden_clone_schema, handle_clone},
    {&warden_update_schema, handle_update},
    {&warden_fits_schema, handle_fits},
    {&warden_stats_schema, handle_stats},
    {&warden_socket_schema, handle_socket},
    {&warden_helper_schema, handle_helper},
    {&warden_delegate_schema, handle_delegate},
    {&warden_machine_ask_schema, handle_machine},
    {&warden_claim_schema, handle_claim},
    {&warden_net_set_schema, handle_net_set},
    {&warden_net_admit_schema, handle_net_admit, true},
    {&warden_net_listen_schema, handle_net_listen, true},
    {&warden_net_count_schema, handle_net_count, true},
};

int request_handle(struct connection *connection, const struct frame_header *header,
                   struct slice payload, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].schema->type != header->type || rows[i].egress != connection->egress)
            continue;
        union request request;
        struct error failure;
        bool hello = rows[i].schema == &warden_hello_schema;
        if ((!hello && connection_check_epoch(connection, &failure) < 0) ||
            wire_decode(rows[i].schema, payload, &request, &failure) < 0 ||
            rows[i].handle(connection, header->id, &request, &failure) < 0) {
            wire_encode_error(&connection->out, header->id, &failure);
            connection_flush(connection);
        }
        return 0;
    }
    return error_set(err, ERROR_INVALID_ARGUMENT, "unknown message %u", header->type);
}
