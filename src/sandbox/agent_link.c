/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connection to a sandbox's agent: made when first needed, shared by everybody who has
 * something to ask, closed after a while of silence, so that thousands of idle sandboxes cost no
 * descriptors. One with a command in the background is not idle: its end is asked for in advance
 * (sandbox/unattended.h), over the one connection for all of them, which stays until the last has
 * ended.
 */

#include "sandbox/history_state.h"
#include "sandbox/state.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "wire/messages.h"

enum {
    BECOMES_READY_MS = 120 * 1000,
    IDLE_MS = 30 * 1000,
    HELLO_MS = 10 * 1000,
};

/* Why it is not running, and what to do. What went wrong in it is not for visitors. */
static int refuse(const struct sandbox *sb, enum sandbox_use use, struct error *err)
{
    const char *verb = sandbox_is_paused(sb) ? "resume" : "start";
    const char *address = sb->group == NULL ? sb->name : sb->id;
    int64_t again_ms = sandbox_restarts_in_ms(sb);
    if (again_ms >= 0)
        return error_set(err, ERROR_NOT_RUNNING,
                         "sandbox \"%s\" is %s, and started again in %.1f s (spec.restart: always)",
                         sandbox_path(sb), sandbox_status_text(sb->status),
                         (double)again_ms / 1000);
    const struct event_record *last =
        sb->event_count == 0 ? NULL : &sb->events[sb->event_count - 1];
    bool reason = use == USE_REQUEST && sb->status == SANDBOX_FAILED && last != NULL;
    return error_set(err, ERROR_NOT_RUNNING,
                     "sandbox \"%s\" is %s%s%.150s%s: %s it first (PUT /v0/sandbox/%s/%s)",
                     sandbox_path(sb), sandbox_status_text(sb->status), reason ? " (" : "",
                     reason ? last->message : "", reason ? ")" : "", verb, address, verb);
}

static int find_running(struct sandboxes *s, const char *workspace, const char *name,
                        enum sandbox_use use, uint16_t port, struct sandbox **ret_sandbox,
                        struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    sandbox_hold(sb);
    /* A look at its files for its history is nobody's use of it: it wakes nothing. */
    bool used = !history_is_looking(sb);
    if (used)
        sandbox_used(sb);
    if (used && sandbox_wake(sb, use, port, err) < 0)
        return -1;
    while (sandbox_comes_up(sb))
        if (co_cond_wait(s->loop, &sb->changed, BECOMES_READY_MS, err) < 0)
            return -1;
    if (sb->gone)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "there is no sandbox \"%s\"",
                         sandbox_path(sb));
    if (sb->status != SANDBOX_RUNNING)
        return refuse(sb, use, err);
    if (history_settle(sb, err) < 0)
        return -1;
    if (used)
        tally_action(sb);
    *ret_sandbox = steal_ptr(sb);
    return 0;
}

int sandbox_running(struct sandboxes *s, const char *workspace, const char *name,
                    struct sandbox **ret_sandbox, struct error *err)
{
    return find_running(s, workspace, name, USE_REQUEST, 0, ret_sandbox, err);
}

int sandbox_running_for_port(struct sandboxes *s, const char *workspace, const char *name,
                             uint16_t port, struct sandbox **ret_sandbox, struct error *err)
{
    return find_running(s, workspace, name, USE_VISIT, port, ret_sandbox, err);
}

void sandbox_agent_close(struct sandbox *sb)
{
    timer_stop(&sb->agent_idle);
    struct channel *channel = sb->agent;
    sb->agent = NULL;
    channel_free(channel);
}

static void agent_closed(void *ctx)
{
    sandbox_agent_close(ctx);
}

static void agent_idle(struct timer *timer)
{
    struct sandbox *sb = container_of(timer, struct sandbox, agent_idle);
    if (sb->agent != NULL && channel_calls(sb->agent) + channel_questions(sb->agent) > 0)
        timer_start(sb->owner->loop, timer, IDLE_MS, agent_idle);
    else
        sandbox_agent_close(sb);
}

static int open_channel(struct sandbox *sb, int fd, struct error *err)
{
    struct channel_events events = {
        .closed = agent_closed, .cancel = &agent_cancel_schema, .meter = METER_AGENT, .ctx = sb};
    sb->agent = channel_new(sb->owner->loop, fd, &events, err);
    return sb->agent == NULL ? -1 : 0;
}

void sandbox_agent_expect(struct sandbox *sb)
{
    struct provider *p = sb->owner->provider;
    struct error err; /* whoever needs it tries again, and is told */
    int fd;
    if (sb->agent != NULL || sb->agent_connecting || p->ops->connect(p, sb->id, &fd, &err) < 0)
        return;
    if (open_channel(sb, fd, &err) == 0)
        timer_start(sb->owner->loop, &sb->agent_idle, IDLE_MS, agent_idle);
}

static int check_version(const struct sandbox *sb, uint64_t version, struct error *err)
{
    if (version >= AGENT_VERSION_OLDEST && version <= AGENT_VERSION)
        return 0;
    return error_set(
        err, ERROR_AGENT_INCOMPATIBLE,
        "sandbox \"%s\" was started by another release of the server, and its agent "
        "speaks version %llu of the protocol (here: %d to %d; 0: unknown): stop it and "
        "start it again, which keeps its files",
        sandbox_path(sb), (unsigned long long)version, AGENT_VERSION_OLDEST, AGENT_VERSION);
}

/* Asks an agent that an earlier server has started for its version. */
static int greet_agent(struct sandbox *sb, struct error *err)
{
    const struct channel_events events = {.meter = METER_AGENT};
    struct sandboxes *s = sb->owner;
    const unsigned agent = sb->agents;
    struct agent_about about;
    struct error why;
    int fd;
    if (s->provider->ops->connect(s->provider, sb->id, &fd, err) < 0)
        return -1;
    struct channel *channel = channel_new(s->loop, fd, &events, err);
    if (channel == NULL)
        return -1;
    struct arena *arena = arena_new();
    int rc = channel_call(channel, &agent_hello_schema, NULL, &agent_about_schema, arena, &about,
                          HELLO_MS, &why);
    arena_free(arena);
    channel_free(channel);
    if (rc < 0 && why.code == ERROR_INVALID_ARGUMENT) /* one of us did not understand the other */
        about.version = 0;
    else if (rc < 0)
        return error_set(err, why.code, "%s", why.message);
    if (check_version(sb, about.version, err) < 0)
        return -1;
    if (agent == sb->agents) /* not yet another one's */
        sb->agent_checked = true;
    return 0;
}

int sandbox_agent_connect(struct sandbox *sb, int *ret_fd, struct error *err)
{
    struct provider *p = sb->owner->provider;
    if (!sb->agent_checked && greet_agent(sb, err) < 0)
        return -1;
    return p->ops->connect(p, sb->id, ret_fd, err);
}

static int connect_agent(struct sandbox *sb, struct error *err)
{
    int fd;
    sb->agent_connecting = true;
    int rc = sandbox_agent_connect(sb, &fd, err);
    sb->agent_connecting = false;
    co_cond_wake_all(&sb->agent_ready);
    if (rc < 0)
        return error_prefix(err, "reaching the sandbox's agent");
    if (sb->status != SANDBOX_RUNNING) {
        close(fd);
        return error_set(err, ERROR_NOT_RUNNING, "sandbox \"%s\" is %s", sb->name,
                         sandbox_status_text(sb->status));
    }
    return open_channel(sb, fd, err);
}

int sandbox_agent_reach(struct sandbox *sb, struct channel **ret_channel, struct error *err)
{
    struct loop *loop = sb->owner->loop;
    while (sb->agent == NULL && sb->agent_connecting)
        if (co_cond_wait(loop, &sb->agent_ready, BECOMES_READY_MS, err) < 0)
            return -1;
    if (sb->agent == NULL && connect_agent(sb, err) < 0)
        return -1;
    timer_start(loop, &sb->agent_idle, IDLE_MS, agent_idle);
    *ret_channel = sb->agent;
    return 0;
}

int sandbox_agent(struct sandboxes *s, const char *workspace, const char *name,
                  struct sandbox **ret_sandbox, struct channel **ret_channel, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    if (sandbox_running(s, workspace, name, &sb, err) < 0 ||
        sandbox_agent_reach(sb, ret_channel, err) < 0)
        return -1;
    *ret_sandbox = steal_ptr(sb);
    return 0;
}
