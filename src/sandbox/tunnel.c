/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams into sandboxes, counted, and kept for a moment: asking the warden for a socket costs more
 * than a small request does.
 */

#include "sandbox/tunnel.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/state.h"

struct tunnel {
    struct sandbox *sb; /* held */
    int fd;
    uint16_t port;
    bool used;
    struct tunnel *next; /* while idle */
    struct watch watch;
    struct timer timer;
};

static void unlink_idle(struct tunnel *t)
{
    struct tunnel **at = &t->sb->idle_tunnels;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->sb->idle_tunnel_count--;
    watch_stop(&t->watch);
    timer_stop(&t->timer);
}

void tunnel_close(struct tunnel *t)
{
    if (t == NULL)
        return;
    close(t->fd);
    t->sb->tunnels--;
    sandbox_drop(t->sb);
    free(t);
}

static void close_idle(struct tunnel *t)
{
    unlink_idle(t);
    tunnel_close(t);
}

/* Its peer closed it, or said something that nobody had asked for. */
static void idle_event(struct watch *watch, uint32_t events)
{
    close_idle(container_of(watch, struct tunnel, watch));
}

static void idle_expired(struct timer *timer)
{
    close_idle(container_of(timer, struct tunnel, timer));
}

void tunnel_keep(struct tunnel *t)
{
    struct sandbox *sb = t->sb;
    struct loop *loop = sb->owner->loop;
    if (sb->gone || sb->owner->closing || sb->idle_tunnel_count == TUNNELS_IDLE_MAX ||
        watch_start(loop, &t->watch, t->fd, EPOLLIN | EPOLLRDHUP, idle_event, NULL) != 0) {
        tunnel_close(t);
        return;
    }
    timer_start(loop, &t->timer, TUNNEL_KEEP_MS, idle_expired);
    t->next = sb->idle_tunnels;
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
    for (struct tunnel *t = sb->idle_tunnels; t != NULL; t = t->next)
        if (t->port == port) {
            unlink_idle(t);
            t->used = true;
            return t;
        }
    return NULL;
}

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
    int rc = provider->ops->dial(provider, sb->id, port, TUNNEL_CONNECT_MS, &t->fd, err);
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

int sandbox_tunnel(struct sandboxes *s, const char *workspace, const char *name, uint16_t port,
                   bool may_reuse, struct tunnel **ret_tunnel, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    if (port == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "ports go from 1 to 65535");
    if (sandbox_running(s, workspace, name, &sb, err) < 0)
        return -1;
    struct tunnel *t = may_reuse ? take_idle(sb, port) : NULL;
    if (t == NULL)
        return dial(sb, port, ret_tunnel, err);
    *ret_tunnel = t;
    return 0;
}

int tunnel_fd(const struct tunnel *t)
{
    return t->fd;
}

bool tunnel_was_used(const struct tunnel *t)
{
    return t->used;
}
