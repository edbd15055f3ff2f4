/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The native provider: sandboxes made by the warden on this machine.
 *
 * The warden can be killed and started again at any time without the sandboxes noticing, so a lost
 * connection is nothing special here: calls under way fail with UNAVAILABLE, later ones wait for
 * the next connection, and the owner is told to compare notes when it is there.
 */

#include "provider/provider.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/log.h"
#include "loop/co.h"
#include "loop/net.h"
#include "provider/channel.h"
#include "provider/dial.h"
#include "wire/epoch.h"

enum {
    CONNECT_TIMEOUT_MS = 5 * 1000,
    RETRY_MS = 20,
    READY_TIMEOUT_MS = 120 * 1000, /* a first start walks the host's /usr */
    CALL_TIMEOUT_MS = 120 * 1000,
    CLONE_TIMEOUT_MS = 60 * 60 * 1000, /* plain storage copies every byte */
    LIST_MAX = 100 * 1000,
};

struct native {
    struct provider provider;
    struct loop *loop;
    struct provider_events events;
    int run_fd;
    int agents_fd;           /* opened at every greeting: the warden mounts it when it starts */
    struct channel *channel; /* NULL while there is none */
    struct co_cond connected;
    struct co *connector;
    bool connected_before;
    bool freed;
    struct arena *about_arena;
    struct warden_about about;
    struct dialer dialer; /* its connections have the epoch of this one */
};

static struct native *native_of(struct provider *p)
{
    return container_of(p, struct native, provider);
}

static void native_event(void *ctx, const struct frame_header *header, struct slice payload)
{
    struct native *n = ctx;
    struct warden_exited exited;
    struct error err;
    if (header->type != WARDEN_EXITED)
        return;
    if (wire_decode(&warden_exited_schema, payload, &exited, &err) < 0) {
        log_error("bad event from the warden: %s", err.message);
        return;
    }
    n->events.exited(n->events.ctx, exited.id, exited.oom != 0);
}

static void connector(void *arg);

static void start_connector(struct native *n)
{
    struct error err;
    if (n->connector != NULL || n->freed)
        return;
    if (co_spawn(n->loop, connector, n, NULL, &err) < 0)
        log_error("connecting to the warden: %s", err.message);
}

static void native_closed(void *ctx)
{
    struct native *n = ctx;
    if (n->freed)
        return;
    log_warn("lost the connection to the warden");
    channel_free(n->channel);
    n->channel = NULL;
    start_connector(n);
}

static int ask_about(struct native *n, struct channel *channel, struct error *err)
{
    struct warden_about about;
    struct arena *arena = arena_new();
    n->dialer.epoch = wire_epoch_after(n->dialer.epoch);
    const struct warden_hello hello = {.epoch = n->dialer.epoch};
    if (channel_call(channel, &warden_hello_schema, &hello, &warden_about_schema, arena, &about,
                     READY_TIMEOUT_MS, err) < 0) {
        arena_free(arena);
        return -1;
    }
    arena_free(n->about_arena);
    n->about_arena = arena;
    n->about = about;
    if (about.version != WARDEN_VERSION)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the warden speaks version %llu of the protocol, not %d",
                         (unsigned long long)about.version, WARDEN_VERSION);
    if (about.agent_version < AGENT_VERSION_OLDEST || about.agent_version > AGENT_VERSION)
        return error_set(
            err, ERROR_UNAVAILABLE, "the warden starts agents of version %llu, not %d to %d",
            (unsigned long long)about.agent_version, AGENT_VERSION_OLDEST, AGENT_VERSION);
    cleanup_fd(&n->agents_fd);
    n->agents_fd = openat(n->run_fd, "agents", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return n->agents_fd < 0 ? error_sys(err, "opening %s", LAYOUT_AGENTS) : 0;
}

static int greet(struct native *n, int fd, struct error *err)
{
    struct channel_events events = {
        .event = native_event, .closed = native_closed, .meter = METER_WARDEN, .ctx = n};
    struct channel *channel = channel_new(n->loop, fd, &events, err);
    if (channel == NULL)
        return -1;
    n->channel = channel;
    int rc = ask_about(n, channel, err);
    if (n->channel != channel) /* closed meanwhile, and freed there */
        return rc < 0 ? -1 : error_set(err, ERROR_UNAVAILABLE, "the warden went away again");
    if (rc < 0) {
        n->channel = NULL;
        channel_free(channel);
    }
    return rc;
}

/* Runs until there is a connection; one at a time. */
static void connector(void *arg)
{
    struct native *n = arg;
    struct error err;
    n->connector = co_self(n->loop);
    bool ok = false;
    while (!ok && !n->freed) {
        int fd;
        ok =
            net_connect_at(n->loop, n->run_fd, "warden.sock", CONNECT_TIMEOUT_MS, &fd, &err) == 0 &&
            greet(n, fd, &err) == 0;
        if (!ok)
            meter_count(loop_meters(n->loop), METER_RETRY_CONNECT);
        if (!ok && (err.code == ERROR_CANCELLED || co_sleep(n->loop, RETRY_MS, &err) < 0))
            break;
    }
    n->connector = NULL;
    if (n->freed) {
        free(n);
        return;
    }
    if (!ok)
        return;
    co_cond_wake_all(&n->connected);
    bool again = n->connected_before;
    n->connected_before = true;
    if (again) {
        log_info("connected to the warden again");
        n->events.reconnected(n->events.ctx);
    }
}

static int ready_channel(struct native *n, struct channel **ret_channel, struct error *err)
{
    while (n->channel == NULL || n->connector != NULL) {
        start_connector(n);
        if (n->channel != NULL && n->connector == NULL)
            break;
        if (co_cond_wait(n->loop, &n->connected, READY_TIMEOUT_MS, err) < 0) {
            if (err != NULL && err->code == ERROR_TIMEOUT)
                error_set(err, ERROR_UNAVAILABLE, "the warden does not answer");
            return -1;
        }
    }
    *ret_channel = n->channel;
    return 0;
}

static int timed_call(struct provider *p, const struct wire_schema *schema, const void *msg,
                      const struct wire_schema *answer, void *ret_msg, int64_t timeout_ms,
                      struct error *err)
{
    struct channel *channel;
    if (ready_channel(native_of(p), &channel, err) < 0)
        return -1;
    struct arena *arena = arena_new();
    int rc = channel_call(channel, schema, msg, answer, arena, ret_msg, timeout_ms, err);
    arena_free(arena);
    return rc;
}

static int simple_call(struct provider *p, const struct wire_schema *schema, const void *msg,
                       const struct wire_schema *answer, void *ret_msg, struct error *err)
{
    return timed_call(p, schema, msg, answer, ret_msg, CALL_TIMEOUT_MS, err);
}

static int native_start(struct provider *p, const struct plan *plan,
                        struct provider_started *ret_started, struct error *err)
{
    struct channel *channel;
    struct warden_started started;
    if (ready_channel(native_of(p), &channel, err) < 0)
        return -1;
    struct arena *arena = arena_new();
    int rc = channel_call(channel, &warden_start_schema, plan, &warden_started_schema, arena,
                          &started, CALL_TIMEOUT_MS, err);
    if (rc == 0) {
        *ret_started =
            (struct provider_started){.fresh = started.fresh != 0, .joined = started.joined != 0};
        if (started.address != NULL)
            snprintf(ret_started->address, sizeof(ret_started->address), "%s", started.address);
        if (started.address6 != NULL)
            snprintf(ret_started->address6, sizeof(ret_started->address6), "%s", started.address6);
    }
    arena_free(arena);
    return rc;
}

static int native_net_set(struct provider *p, const struct warden_net_set *request,
                          struct error *err)
{
    return simple_call(p, &warden_net_set_schema, request, &wire_ok_schema, NULL, err);
}

static int native_stop(struct provider *p, const char *id, int64_t grace_ms, struct error *err)
{
    struct warden_stop msg = {.id = id, .grace_ms = (uint64_t)grace_ms};
    return simple_call(p, &warden_stop_schema, &msg, &wire_ok_schema, NULL, err);
}

static int native_remove(struct provider *p, const char *id, struct error *err)
{
    struct warden_ref msg = {.id = id};
    return simple_call(p, &warden_remove_schema, &msg, &wire_ok_schema, NULL, err);
}

static int native_pause(struct provider *p, const char *id, struct error *err)
{
    struct warden_ref msg = {.id = id};
    return simple_call(p, &warden_pause_schema, &msg, &wire_ok_schema, NULL, err);
}

static int native_resume(struct provider *p, const char *id, struct error *err)
{
    struct warden_ref msg = {.id = id};
    return simple_call(p, &warden_resume_schema, &msg, &wire_ok_schema, NULL, err);
}

static int native_clone(struct provider *p, const struct warden_clone *request, struct error *err)
{
    return timed_call(p, &warden_clone_schema, request, &wire_ok_schema, NULL, CLONE_TIMEOUT_MS,
                      err);
}

static int native_update(struct provider *p, const struct warden_update *request, struct error *err)
{
    return simple_call(p, &warden_update_schema, request, &wire_ok_schema, NULL, err);
}

static int native_claim(struct provider *p, const struct plan *plan, struct error *err)
{
    return simple_call(p, &warden_claim_schema, plan, &wire_ok_schema, NULL, err);
}

static int native_fits(struct provider *p, const char *id, uint64_t disk_bytes, struct error *err)
{
    struct warden_fits msg = {.id = id, .disk_bytes = disk_bytes};
    return simple_call(p, &warden_fits_schema, &msg, &wire_ok_schema, NULL, err);
}

struct list_ctx {
    int (*each)(void *ctx, const struct warden_entry *entry, struct error *err);
    void *ctx;
};

static int list_item(void *arg, const void *item, struct error *err)
{
    struct list_ctx *list = arg;
    return list->each(list->ctx, item, err);
}

static int native_list(struct provider *p,
                       int (*each)(void *ctx, const struct warden_entry *entry, struct error *err),
                       void *ctx, struct error *err)
{
    struct channel *channel;
    struct list_ctx list = {each, ctx};
    if (ready_channel(native_of(p), &channel, err) < 0)
        return -1;
    struct arena *arena = arena_new();
    int rc = channel_list(channel, &warden_list_schema, NULL, &warden_entry_schema, arena, LIST_MAX,
                          list_item, &list, CALL_TIMEOUT_MS, err);
    arena_free(arena);
    return rc;
}

struct stats_ctx {
    int (*each)(void *ctx, const struct warden_sample *sample, struct error *err);
    void *ctx;
};

static int stats_item(void *arg, const void *item, struct error *err)
{
    struct stats_ctx *stats = arg;
    return stats->each(stats->ctx, item, err);
}

static int native_stats(struct provider *p, struct slice ids,
                        int (*each)(void *ctx, const struct warden_sample *sample,
                                    struct error *err),
                        void *ctx, struct error *err)
{
    struct channel *channel;
    struct stats_ctx stats = {each, ctx};
    struct warden_stats msg = {.ids = ids};
    if (ready_channel(native_of(p), &channel, err) < 0)
        return -1;
    struct arena *arena = arena_new();
    int rc = channel_list(channel, &warden_stats_schema, &msg, &warden_sample_schema, arena,
                          STATS_IDS_MAX, stats_item, &stats, CALL_TIMEOUT_MS, err);
    arena_free(arena);
    return rc;
}

static int native_connect(struct provider *p, const char *id, int *ret_fd, struct error *err)
{
    struct native *n = native_of(p);
    if (n->agents_fd < 0)
        return error_set(err, ERROR_UNAVAILABLE, "the warden is not there yet");
    return net_connect_to_stranger(n->loop, n->agents_fd, id, CONNECT_TIMEOUT_MS, ret_fd, err);
}

static int native_dial(struct provider *p, const char *id, uint16_t port, int64_t timeout_ms,
                       int *ret_fd, struct error *err)
{
    struct native *n = native_of(p);
    struct channel *channel; /* only to know that the warden is there */
    if (ready_channel(n, &channel, err) < 0)
        return -1;
    return dialer_dial(&n->dialer, id, port, timeout_ms, ret_fd, err);
}

static int native_helper(struct provider *p, unsigned group, unsigned part, int *ret_fd,
                         struct error *err)
{
    struct native *n = native_of(p);
    struct channel *channel; /* only to know that the warden is there */
    const struct warden_helper request = {.group = group, .part = part};
    if (ready_channel(n, &channel, err) < 0)
        return -1;
    return dialer_ask(&n->dialer, &warden_helper_schema, &request, ret_fd, err);
}

static int native_dial_name(struct provider *p, const char *id, const char *name,
                            int64_t timeout_ms, int *ret_fd, struct error *err)
{
    struct native *n = native_of(p);
    struct channel *channel;
    if (ready_channel(n, &channel, err) < 0)
        return -1;
    return dialer_dial_name(&n->dialer, id, name, timeout_ms, ret_fd, err);
}

static int native_delegate(struct provider *p, const char *id, int ret_fds[LIMIT_FDS],
                           struct error *err)
{
    static const uint64_t controllers[LIMIT_FDS] = {DELEGATE_MEMORY, DELEGATE_PIDS};
    struct native *n = native_of(p);
    struct channel *channel;
    if (ready_channel(n, &channel, err) < 0)
        return -1;
    int fds[LIMIT_FDS] = {-1, -1};
    bool folders = strcmp(n->about.cgroups, "v1") == 0;
    if (!folders) {
        const struct warden_delegate request = {.id = id};
        if (simple_call(p, &warden_delegate_schema, &request, &wire_ok_schema, NULL, err) < 0)
            return -1;
    }
    for (size_t i = 0; folders && i < LIMIT_FDS; i++) {
        const struct warden_delegate request = {.id = id, .controller = controllers[i]};
        if (dialer_ask(&n->dialer, &warden_delegate_schema, &request, &fds[i], err) < 0) {
            cleanup_fd(&fds[0]);
            return -1;
        }
    }
    memcpy(ret_fds, fds, sizeof(fds));
    return 0;
}

static int native_machine(struct provider *p, struct arena *arena,
                          struct warden_machine *ret_machine, struct error *err)
{
    struct channel *channel;
    if (ready_channel(native_of(p), &channel, err) < 0)
        return -1;
    return channel_call(channel, &warden_machine_ask_schema, NULL, &warden_machine_schema, arena,
                        ret_machine, CALL_TIMEOUT_MS, err);
}

static int native_about(struct provider *p, struct warden_about *ret_about, struct error *err)
{
    struct channel *channel;
    if (ready_channel(native_of(p), &channel, err) < 0)
        return -1;
    *ret_about = native_of(p)->about;
    return 0;
}

static void native_free(struct provider *p)
{
    struct native *n = native_of(p);
    n->freed = true;
    channel_free(n->channel);
    n->channel = NULL;
    arena_free(n->about_arena);
    close(n->run_fd);
    cleanup_fd(&n->agents_fd);
    if (n->connector != NULL)
        co_cancel(n->connector); /* it frees n when it ends */
    else
        free(n);
}

static const struct provider_ops native_ops = {
    .name = "native",
    .start = native_start,
    .stop = native_stop,
    .remove = native_remove,
    .pause = native_pause,
    .resume = native_resume,
    .clone = native_clone,
    .update = native_update,
    .net_set = native_net_set,
    .claim = native_claim,
    .fits = native_fits,
    .list = native_list,
    .stats = native_stats,
    .connect = native_connect,
    .dial = native_dial,
    .dial_name = native_dial_name,
    .helper = native_helper,
    .delegate = native_delegate,
    .machine = native_machine,
    .about = native_about,
    .free = native_free,
};

int provider_native_new(struct loop *loop, int data_dir_fd, const struct provider_events *events,
                        struct provider **ret_provider, struct error *err)
{
    _cleanup_fd_ int run_fd = openat(data_dir_fd, LAYOUT_RUN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run_fd < 0)
        return error_sys(err, "opening %s", LAYOUT_RUN);
    struct native *n = calloc(1, sizeof(*n));
    if (n == NULL)
        return error_sys(err, "allocating the provider");
    n->provider.ops = &native_ops;
    n->loop = loop;
    n->events = *events;
    n->run_fd = steal_fd(&run_fd);
    n->agents_fd = -1;
    n->dialer = (struct dialer){.loop = loop, .run_fd = n->run_fd, .fd = -1};
    *ret_provider = &n->provider;
    return 0;
}
