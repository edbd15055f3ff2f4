/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams into sandboxes, counted, and kept for a moment: asking the warden for a socket costs more
 * than a small request does. A kept one stays in the loop's epoll, edge-triggered, so that a
 * request on it costs no system call but its own reads and writes.
 */

#include "sandbox/tunnel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "observe/meters.h"
#include "sandbox/state.h"

struct tunnel {
    struct sandbox *sb; /* held */
    int fd;
    uint16_t port;
    bool used;           /* a request was on it before */
    bool idle;           /* among its sandbox's idle ones */
    struct tunnel *next; /* … which are a list */
    struct timer timer;
    struct watch watch; /* from the first wait on */
    bool readable;      /* perhaps: an event came since somebody waited */
    struct co_cond arrived;
};

static void unlink_idle(struct tunnel *t)
{
    struct tunnel **at = &t->sb->idle_tunnels;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->sb->idle_tunnel_count--;
    t->idle = false;
    timer_stop(&t->timer);
}

static void tunnel_free(struct tunnel *t)
{
    watch_stop(&t->watch);
    close(t->fd);
    t->sb->tunnels--;
    sandbox_drop(t->sb);
    free(t);
}

void tunnel_close(struct tunnel *t)
{
    if (t == NULL)
        return;
    sandbox_used(t->sb);
    tunnel_free(t);
}

static void close_idle(struct tunnel *t)
{
    unlink_idle(t);
    tunnel_free(t);
}

/* Whether its peer has closed it meanwhile, or said something that nobody had asked for. */
static bool is_stale(const struct tunnel *t)
{
    char byte;
    return recv(t->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* --- waiting --- */

/* The news may be old: of bytes that were read before they were announced. */
static void event(struct watch *watch, uint32_t events)
{
    struct tunnel *t = container_of(watch, struct tunnel, watch);
    t->readable = true;
    if (t->idle && is_stale(t))
        close_idle(t);
    else
        co_cond_wake(&t->arrived);
}

int tunnel_wait(void *arg, int fd, uint32_t events, int64_t timeout_ms, struct error *err)
{
    struct tunnel *t = arg;
    struct loop *loop = t->sb->owner->loop;
    /* Somebody who waits to write may have been faster: co_wait_fd() gets along with him. */
    bool watched =
        t->watch.loop != NULL ||
        watch_start(loop, &t->watch, t->fd, EPOLLIN | EPOLLRDHUP | EPOLLET, event, NULL) == 0;
    if ((events & EPOLLIN) == 0 || fd != t->fd || !watched)
        return co_wait_fd(loop, fd, events, timeout_ms, err);
    if (!t->readable && co_cond_wait(loop, &t->arrived, timeout_ms, err) != 0)
        return -1;
    t->readable = false; /* whoever reads now waits again only when there is nothing more */
    return 0;
}

void tunnel_unwatch(struct tunnel *t)
{
    watch_stop(&t->watch);
    t->readable = false;
}

/* --- kept ones --- */

static void idle_expired(struct timer *timer)
{
    close_idle(container_of(timer, struct tunnel, timer));
}

void tunnel_keep(struct tunnel *t)
{
    struct sandbox *sb = t->sb;
    sandbox_used(sb);
    if (sb->gone || sb->status != SANDBOX_RUNNING || sb->idle_tunnel_count == TUNNELS_IDLE_MAX) {
        tunnel_close(t);
        return;
    }
    timer_start(sb->owner->loop, &t->timer, TUNNEL_KEEP_MS, idle_expired);
    t->next = sb->idle_tunnels;
    t->idle = true;
    sb->idle_tunnels = t;
    sb->idle_tunnel_count++;
}

void tunnels_close_idle(struct sandbox *sb)
{
    sandbox_hold(sb);
    while (sb->idle_tunnels != NULL)
        close_idle(sb->idle_tunnels);
    sandbox_drop(sb);
}

static struct tunnel *take_idle(struct sandbox *sb, uint16_t port)
{
    for (struct tunnel *t = sb->idle_tunnels, *next; t != NULL; t = next) {
        next = t->next;
        if (t->port != port)
            continue;
        unlink_idle(t);
        t->used = true;
        /* One that is watched would have been closed. */
        if (t->watch.loop != NULL || !is_stale(t))
            return t;
        tunnel_free(t);
    }
    return NULL;
}

/* --- new ones --- */

static int dial(struct sandbox *sb, uint16_t port, struct tunnel **ret_tunnel, struct error *err)
{
    struct provider *provider = sb->owner->provider;
    if (sb->tunnels >= TUNNELS_MAX && sb->idle_tunnels != NULL)
        close_idle(sb->idle_tunnels);
    if (sb->tunnels >= TUNNELS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "%d connections to sandbox \"%s\" are open already", TUNNELS_MAX,
                         sb->name);
    _cleanup_free_ struct tunnel *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return error_sys(err, "allocating a tunnel");
    sb->tunnels++; /* before it waits: the limit holds for those under way too */
    uint64_t begun = meter_now();
    int rc = provider->ops->dial(provider, sb->id, port, TUNNEL_CONNECT_MS, &t->fd, err);
    meter_took(loop_meters(sb->owner->loop), METER_CALL_PORT, begun);
    if (rc != 0) {
        sb->tunnels--;
        return -1;
    }
    sandbox_hold(sb);
    t->sb = sb;
    t->port = port;
    *ret_tunnel = steal_ptr(t);
    return 0;
}

static int dial_again(struct sandbox *sb, uint16_t port, void *ctx, struct error *err)
{
    return dial(sb, port, ctx, err);
}

int sandbox_tunnel(struct sandboxes *s, const char *workspace, const char *name, uint16_t port,
                   bool may_reuse, struct tunnel **ret_tunnel, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    if (port == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "ports go from 1 to 65535");
    if (sandbox_running_for_port(s, workspace, name, port, &sb, err) < 0)
        return -1;
    struct tunnel *t = may_reuse ? take_idle(sb, port) : NULL;
    if (t != NULL) {
        *ret_tunnel = t;
        return 0;
    }
    int rc = dial(sb, port, ret_tunnel, err);
    if (rc < 0 && err->code == ERROR_PORT_NOT_LISTENING && sandbox_port_has_command(sb, port))
        rc = sandbox_serve_port(sb, port, dial_again, ret_tunnel, err);
    return rc;
}

int tunnel_fd(const struct tunnel *t)
{
    return t->fd;
}

bool tunnel_was_used(const struct tunnel *t)
{
    return t->used;
}
