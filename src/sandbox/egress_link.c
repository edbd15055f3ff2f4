/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connection to the egress process. A coroutine keeps it up, and tells everything whenever it
 * is there again: an egress process that was restarted knows nothing, and lets nothing through
 * before it does. What is told about a sandbox is always all of what holds for it then, so it does
 * not matter who tells it, how often, and in which order others are told.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/log.h"
#include "loop/net.h"
#include "sandbox/state.h"
#include "wire/epoch.h"

enum { CONNECT_MS = 5000, RETRY_MS = 100, CALL_MS = 20 * 1000 };

static int call(struct sandboxes *s, const struct wire_schema *schema, const void *msg,
                struct error *err)
{
    struct channel *channel = s->networks.egress;
    if (channel == NULL || !channel_is_open(channel))
        return error_set(err, ERROR_UNAVAILABLE, "the egress process is not there right now");
    struct arena *arena = arena_new();
    int r = channel_call(channel, schema, msg, &wire_ok_schema, arena, NULL, CALL_MS, err);
    arena_free(arena);
    return r;
}

/* ---- telling ---- */

static int tell_secrets(struct sandbox *sb, bool open, struct error *err)
{
    struct networks *n = &sb->owner->networks;
    _cleanup_(net_policy_release) struct net_policy policy = {0};
    if (!sb->network.has_headers || n->secrets == NULL || !open)
        return 0;
    const struct slice packed = {sb->network.packed, sb->network.packed_len};
    if (net_policy_unpack(packed, &policy, err) < 0)
        return -1;
    struct arena *arena = arena_new();
    struct egress_secrets secrets = {0};
    int r = n->secrets(n->secrets_ctx, sb->id, sb->workspace, &policy, arena, &secrets, err);
    if (r == 0) {
        secrets.id = sb->id;
        r = call(sb->owner, &egress_secrets_schema, &secrets, err);
    }
    arena_free(arena);
    return r;
}

static int tell(struct sandbox *sb, bool open, struct error *err)
{
    struct egress_set set = {
        .id = sb->id, .address = sb->network.address, .workspace = sb->workspace};
    if (sb->network.address[0] == '\0')
        return 0;
    if (sb->network.ipv6 && sb->network.address6[0] != '\0')
        set.address6 = sb->network.address6;
    set.log_after = network_log_after(sb);
    if (open)
        set.policy = (struct slice){sb->network.packed, sb->network.packed_len};
    if (call(sb->owner, &egress_set_schema, &set, err) < 0)
        return -1;
    return tell_secrets(sb, open, err);
}

int egress_tell(struct sandbox *sb, struct error *err)
{
    sb->network.told = 0;
    return tell(sb, sb->up && !sb->gone, err);
}

static void tell_ahead(void *arg)
{
    struct egress_telling *telling = arg;
    struct sandbox *sb = telling->sb;
    struct error err;
    sb->network.told = sb->owner->networks.connection;
    if (tell(sb, true, &err) < 0)
        sb->network.told = 0;
    telling->under_way = false;
    co_cond_wake_all(&telling->over);
}

void egress_tell_ahead(struct sandbox *sb, struct egress_telling *telling)
{
    struct error err;
    *telling = (struct egress_telling){.sb = sb};
    sb->network.told = 0;
    if (sb->network.address[0] == '\0' || sb->owner->networks.egress == NULL)
        return;
    telling->under_way = true;
    if (co_spawn(sb->owner->loop, tell_ahead, telling, NULL, &err) < 0)
        telling->under_way = false; /* it is told once it runs */
}

void egress_told(struct egress_telling *telling)
{
    struct error err;
    while (telling->under_way)
        (void)co_cond_wait(telling->sb->owner->loop, &telling->over, -1, &err);
}

void egress_forget(struct sandbox *sb)
{
    struct error err;
    const struct egress_ref ref = {.id = sb->id};
    if (sb->owner->networks.egress != NULL && call(sb->owner, &egress_drop_schema, &ref, &err) < 0)
        log_warn("sandbox %s: forgetting its network: %s", sb->id, err.message);
}

/* Calls wait, and sandboxes come and go meanwhile: so they are held first. */
static struct sandbox **hold_all(struct sandboxes *s, size_t *ret_count)
{
    struct sandbox **all = calloc(HASH_CNT(by_id, s->ids) + 1, sizeof(*all));
    if (all == NULL)
        abort();
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next) {
        sandbox_hold(sb);
        all[(*ret_count)++] = sb;
    }
    return all;
}

static int tell_all(struct sandboxes *s, struct error *err)
{
    size_t count = 0;
    int r = 0;
    struct buf ids = BUF_INIT(WIRE_DATA_CHUNK);
    struct sandbox **all = hold_all(s, &count);
    for (size_t i = 0; i < count; i++) {
        if (r == 0 && all[i]->up && !all[i]->gone && egress_tell(all[i], err) < 0) {
            log_warn("sandbox %s: its network: %s", all[i]->id, err->message);
            r = err->code == ERROR_UNAVAILABLE || err->code == ERROR_CANCELLED ? -1 : 0;
        }
        buf_add(&ids, all[i]->id, strlen(all[i]->id) + 1);
        sandbox_drop(all[i]);
    }
    free(all);
    const struct egress_keep keep = {.ids = {ids.data, ids.len}};
    if (r == 0 && !ids.failed)
        r = call(s, &egress_keep_schema, &keep, err);
    buf_release(&ids);
    return r;
}

void sandboxes_secrets_changed(struct sandboxes *s, const char *workspace)
{
    size_t count = 0;
    struct error err;
    struct sandbox **all = hold_all(s, &count);
    for (size_t i = 0; i < count; i++) {
        if (!all[i]->gone && strcmp(all[i]->workspace, workspace) == 0 &&
            all[i]->network.address[0] != '\0' && tell_secrets(all[i], all[i]->up, &err) < 0)
            log_warn("sandbox %s: its secrets: %s", all[i]->id, err.message);
        sandbox_drop(all[i]);
    }
    free(all);
}

/* ---- the connection ---- */

static void on_closed(void *ctx)
{
    struct networks *n = ctx;
    channel_free(steal_ptr(n->egress));
    co_cond_wake_all(&n->wake);
}

static int greet(struct sandboxes *s, struct channel *channel, struct error *err)
{
    struct egress_about about;
    struct arena *arena = arena_new();
    const struct egress_hello hello = {.epoch = s->networks.epoch};
    int r = channel_call(channel, &egress_hello_schema, &hello, &egress_about_schema, arena, &about,
                         CALL_MS, err);
    arena_free(arena);
    if (r == 0)
        s->networks.egress_started = about.started_ms;
    if (r == 0 && about.version != EGRESS_VERSION)
        return error_set(err, ERROR_UNAVAILABLE, "the egress process speaks another version");
    return r;
}

static int connect_once(struct sandboxes *s, struct error *err)
{
    struct networks *n = &s->networks;
    const struct channel_events events = {.closed = on_closed, .ctx = n};
    int fd;
    if (net_connect_at(s->loop, n->run_fd, "egress.sock", CONNECT_MS, &fd, err) < 0)
        return -1;
    n->egress = channel_new(s->loop, fd, &events, err);
    if (n->egress == NULL)
        return -1;
    if (n->connection++ > 0) /* what is unread in the connection before is to be dropped */
        n->epoch = wire_epoch_after(n->epoch);
    if (greet(s, n->egress, err) < 0 || tell_all(s, err) < 0) {
        if (n->egress != NULL)
            channel_free(steal_ptr(n->egress));
        return -1;
    }
    return 0;
}

static void keeper(void *arg)
{
    struct sandboxes *s = arg;
    struct networks *n = &s->networks;
    struct error err;
    n->keeper = co_self(s->loop);
    while (!n->closing) {
        if (connect_once(s, &err) == 0)
            while (n->egress != NULL && !n->closing &&
                   co_cond_wait(s->loop, &n->wake, -1, &err) == 0)
                continue;
        if (co_sleep(s->loop, RETRY_MS, &err) < 0)
            break;
    }
    n->keeper = NULL;
}

int egress_link_open(struct sandboxes *s, int data_dir_fd, struct error *err)
{
    if (network_logs_new(s, data_dir_fd, err) < 0)
        return -1;
    s->networks.epoch = wire_epoch_after(0);
    s->networks.run_fd = openat(data_dir_fd, LAYOUT_RUN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return s->networks.run_fd < 0 ? error_sys(err, "opening %s", LAYOUT_RUN) : 0;
}

void egress_link_start(struct sandboxes *s)
{
    struct networks *n = &s->networks;
    struct error err;
    if (!n->available || n->keeper != NULL || n->closing)
        return;
    network_logs_start(s);
    if (co_spawn(s->loop, keeper, s, NULL, &err) < 0)
        log_error("connecting to the egress process: %s", err.message);
}

void egress_link_stop(struct sandboxes *s)
{
    s->networks.closing = true;
    if (s->networks.keeper != NULL)
        co_cancel(s->networks.keeper);
    network_logs_stop(s);
}

void egress_link_free(struct sandboxes *s)
{
    if (s->networks.egress != NULL)
        channel_free(steal_ptr(s->networks.egress));
    cleanup_fd(&s->networks.run_fd);
    network_logs_free(s);
}
