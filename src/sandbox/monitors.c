/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Monitors: a coroutine each, which looks, delivers, and sleeps. What it has seen is stored before
 * it is delivered, and again after: whenever cellad dies, the next one knows what is left to do.
 */

#include "sandbox/monitors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "loop/co.h"
#include "sandbox/ports.h"
#include "sandbox/processes.h"
#include "observe/meters.h"
#include "sandbox/state.h"

enum {
    LOOK_MS = 500,
    RETRY_FIRST_MS = 500,
    RETRY_MOST_MS = 60 * 1000,
    ATTEMPTS_MAX = 12, /* about six minutes */
};

struct known_port {
    unsigned port;
    bool told;       /* or given up */
    bool listening;  /* at the last look */
    unsigned failed; /* attempts */
    int64_t next_at;
};

struct monitor {
    struct monitor *next; /* of the sandbox */
    struct sandbox *sb;
    uint64_t pid;
    uint64_t started_ms; /* pid and this: the same process */
    char *callback;
    unsigned shape;
    struct known_port *ports;
    size_t count;
    bool process_ended;
    bool stopped; /* by somebody, or because it was replaced: its rows are gone */
    struct co *co;
};

void sandboxes_set_port_delivery(struct sandboxes *s, port_delivery *deliver, void *ctx)
{
    s->deliver_port = deliver;
    s->deliver_ctx = ctx;
}

static void monitor_free(struct monitor *m)
{
    free(m->callback);
    free(m->ports);
    sandbox_drop(m->sb);
    free(m);
}

static struct monitor *monitor_new(struct sandbox *sb, uint64_t pid, uint64_t started_ms,
                                   const char *callback, unsigned shape, struct error *err)
{
    struct monitor *m = calloc(1, sizeof(*m));
    char *copy = strdup(callback);
    if (m == NULL || copy == NULL) {
        free(m);
        free(copy);
        error_sys(err, "a new monitor");
        return NULL;
    }
    sandbox_hold(sb);
    *m = (struct monitor){
        .sb = sb, .pid = pid, .started_ms = started_ms, .callback = copy, .shape = shape};
    return m;
}

bool sandbox_is_monitor(const struct sandbox *sb)
{
    const struct co *self = sb->monitors == NULL ? NULL : co_self(sb->owner->loop);
    for (const struct monitor *m = sb->monitors; m != NULL; m = m->next)
        if (m->co != NULL && m->co == self)
            return true;
    return false;
}

static struct monitor *find(struct sandbox *sb, uint64_t pid)
{
    for (struct monitor *m = sb->monitors; m != NULL; m = m->next)
        if (m->pid == pid)
            return m;
    return NULL;
}

static void unlink_monitor(struct monitor *m)
{
    for (struct monitor **at = &m->sb->monitors; *at != NULL; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            m->sb->monitor_count--;
            return;
        }
}

/* --- ports --- */

static struct known_port *find_port(struct monitor *m, unsigned port)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->ports[i].port == port)
            return &m->ports[i];
    return NULL;
}

static struct known_port *add_port(struct monitor *m, unsigned port)
{
    if (m->count == MONITOR_PORTS_MAX)
        return NULL;
    struct known_port *ports = realloc(m->ports, (m->count + 1) * sizeof(*ports));
    if (ports == NULL)
        return NULL;
    m->ports = ports;
    m->ports[m->count] = (struct known_port){.port = port};
    return &m->ports[m->count++];
}

/* A port that is new, or there again after it had gone. */
static int see_port(struct monitor *m, unsigned port, struct error *err)
{
    struct known_port *known = find_port(m, port);
    if (known == NULL) {
        known = add_port(m, port);
        if (known == NULL)
            return 0; /* so many that nobody can want to know */
        known->listening = true;
        return store_put_monitor_port(m->sb->owner->store, m->sb->id, m->pid, port, false, err);
    }
    known->listening = true;
    return 0;
}

/* What was told and is gone is forgotten, so that it is news when it comes back. */
static int forget_gone(struct monitor *m, struct error *err)
{
    for (size_t i = 0; i < m->count;) {
        struct known_port *known = &m->ports[i];
        if (known->listening || !known->told) {
            i++;
            continue;
        }
        unsigned port = known->port;
        *known = m->ports[--m->count];
        if (store_delete_monitor_port(m->sb->owner->store, m->sb->id, m->pid, port, err) < 0)
            return -1;
    }
    return 0;
}

static int look(struct monitor *m, struct arena *arena, struct error *err)
{
    struct sandbox *sb = m->sb;
    struct agent_process process;
    struct agent_port *ports;
    size_t count;
    char pid[24];
    snprintf(pid, sizeof(pid), "%" PRIu64, m->pid);
    if (sandbox_process_get(sb->owner, sb->workspace, sb->id, pid, arena, &process, err) < 0)
        return -1;
    if (process.state != PROCESS_RUNNING || process.started_ms != m->started_ms) {
        m->process_ended = true;
        return 0;
    }
    if (sandbox_process_ports(sb->owner, sb->workspace, sb->id, pid, arena, &ports, &count, err) <
        0)
        return -1;
    for (size_t i = 0; i < m->count; i++)
        m->ports[i].listening = false;
    for (size_t i = 0; i < count; i++)
        if (ports[i].protocol == PORT_TCP && see_port(m, (unsigned)ports[i].port, err) < 0)
            return -1;
    return forget_gone(m, err);
}

/* --- delivering --- */

static int64_t retry_pause(unsigned failed)
{
    int64_t pause = RETRY_FIRST_MS;
    for (unsigned i = 1; i < failed && pause < RETRY_MOST_MS; i++)
        pause *= 2;
    return pause < RETRY_MOST_MS ? pause : RETRY_MOST_MS;
}

static int deliver(struct monitor *m, unsigned port, struct error *err)
{
    struct sandboxes *s = m->sb->owner;
    struct port_event event = {
        .callback = m->callback, .shape = m->shape, .pid = m->pid, .port = port};
    struct error why;
    bool told = s->deliver_port(s->deliver_ctx, &event, &why) == 0;
    struct known_port *known = find_port(m, port);
    if (m->stopped || known == NULL)
        return 0;
    if (!told && s->closing)
        return error_set(err, ERROR_CANCELLED, "the server is going down");
    if (!told) {
        meter_count(loop_meters(s->loop), METER_RETRY_CALLBACK);
        known->next_at = loop_now(s->loop) + retry_pause(++known->failed);
        if (known->failed < ATTEMPTS_MAX && why.code != ERROR_CALLBACK_REFUSED)
            return 0;
        sandbox_note(m->sb, SANDBOX_LOG_WARN,
                     "Callback for port %u of process %" PRIu64 " given up: %s", port, m->pid,
                     why.message);
    }
    known->told = true;
    return store_put_monitor_port(s->store, m->sb->id, m->pid, port, true, err);
}

/* Those whose time has come. Deliveries wait, and the table may change meanwhile. */
static int deliver_due(struct monitor *m, struct error *err)
{
    for (size_t i = 0; i < m->count && !m->stopped; i++)
        if (!m->ports[i].told && m->ports[i].next_at <= loop_now(m->sb->owner->loop) &&
            deliver(m, m->ports[i].port, err) < 0)
            return -1;
    return 0;
}

static bool all_told(const struct monitor *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (!m->ports[i].told)
            return false;
    return true;
}

/* --- its life --- */

/* Whether a failure to look means that there is nothing to look at any more. */
static bool is_final(const struct error *err)
{
    return err->code == ERROR_PROCESS_NOT_FOUND || err->code == ERROR_SANDBOX_NOT_FOUND ||
           err->code == ERROR_NOT_RUNNING;
}

static int turn(struct monitor *m, struct error *err)
{
    if (!m->process_ended && !sandbox_is_paused(m->sb)) {
        struct arena *arena = arena_new();
        struct error why;
        int rc = look(m, arena, &why);
        arena_free(arena);
        if (rc < 0 && why.code == ERROR_CANCELLED) {
            *err = why;
            return -1;
        }
        if (rc < 0 && is_final(&why))
            m->process_ended = true;
        /* Anything else passes, or is seen again at the next look. */
    }
    if (deliver_due(m, err) < 0)
        return -1;
    return m->stopped ? 0 : co_sleep(m->sb->owner->loop, LOOK_MS, err);
}

static void monitor_run(void *arg)
{
    struct monitor *m = arg;
    struct sandboxes *s = m->sb->owner;
    struct error err = {0};
    int rc = 0;
    m->co = co_self(s->loop);
    while (rc == 0 && !m->stopped && !(m->process_ended && all_told(m)))
        rc = turn(m, &err);
    m->co = NULL;
    unlink_monitor(m);
    /* At the end of the server it stays in the store, for the next one. */
    if (rc == 0 && !m->stopped && !m->sb->gone &&
        store_delete_monitor(s->store, m->sb->id, m->pid, &err) < 0)
        log_warn("removing a monitor: %s", err.message);
    else if (rc < 0 && err.code != ERROR_CANCELLED)
        log_warn("monitoring the ports of process %" PRIu64 ": %s", m->pid, err.message);
    monitor_free(m);
    s->monitors_running--;
    co_cond_wake_all(&s->monitors_ended);
}

static int monitor_begin(struct monitor *m, struct error *err)
{
    struct sandboxes *s = m->sb->owner;
    m->next = m->sb->monitors;
    m->sb->monitors = m;
    m->sb->monitor_count++;
    s->monitors_running++;
    if (co_spawn(s->loop, monitor_run, m, NULL, err) == 0)
        return 0;
    s->monitors_running--;
    unlink_monitor(m);
    monitor_free(m);
    return -1;
}

/* Ends it without a word to the store. */
static void monitor_dismiss(struct monitor *m)
{
    m->stopped = true;
    unlink_monitor(m);
    if (m->co != NULL)
        co_cancel(m->co);
}

static int find_process(struct sandboxes *s, const char *workspace, const char *name,
                        const char *process, struct sandbox **ret_sandbox, uint64_t *ret_pid,
                        uint64_t *ret_started_ms, bool *ret_running, struct error *err)
{
    struct arena *arena = arena_new();
    struct agent_process found;
    int rc = sandbox_running(s, workspace, name, ret_sandbox, err);
    if (rc == 0)
        rc = sandbox_process_get(s, workspace, name, process, arena, &found, err);
    if (rc == 0) {
        *ret_pid = found.pid;
        *ret_started_ms = found.started_ms;
        *ret_running = found.state == PROCESS_RUNNING;
    }
    arena_free(arena);
    return rc;
}

int sandbox_monitor_start(struct sandboxes *s, const char *workspace, const char *name,
                          const char *process, const char *callback, unsigned shape,
                          uint64_t *ret_pid, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    uint64_t pid, started_ms;
    bool running;
    if (find_process(s, workspace, name, process, &sb, &pid, &started_ms, &running, err) != 0)
        return -1;
    if (!running)
        return error_set(err, ERROR_NOT_RUNNING, "process %" PRIu64 " has ended", pid);
    struct monitor *old = find(sb, pid);
    if (old == NULL && sb->monitor_count >= MONITORS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED,
                         "the ports of %d processes of this sandbox are monitored already",
                         MONITORS_MAX);
    struct store_monitor row = {.sandbox_id = sb->id,
                                .pid = pid,
                                .started_ms = started_ms,
                                .callback = callback,
                                .shape = shape};
    if (store_put_monitor(s->store, &row, err) < 0)
        return -1;
    while ((old = find(sb, pid)) != NULL)
        monitor_dismiss(old);
    struct monitor *m = monitor_new(sb, pid, started_ms, callback, shape, err);
    if (m == NULL || monitor_begin(m, err) < 0)
        return -1;
    *ret_pid = pid;
    return 0;
}

int sandbox_monitor_stop(struct sandboxes *s, const char *workspace, const char *name,
                         const char *process, uint64_t *ret_pid, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    uint64_t pid, started_ms;
    bool running;
    if (find_process(s, workspace, name, process, &sb, &pid, &started_ms, &running, err) != 0)
        return -1;
    struct monitor *m = find(sb, pid);
    if (m == NULL)
        return error_set(err, ERROR_MONITOR_NOT_FOUND,
                         "the ports of process %" PRIu64 " are not monitored", pid);
    monitor_dismiss(m);
    *ret_pid = pid;
    return store_delete_monitor(s->store, sb->id, pid, err);
}

/* --- the server's beginning and end --- */

static int load_monitor(void *ctx, const struct store_monitor *row, struct error *err)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb = NULL;
    HASH_FIND(by_id, s->ids, row->sandbox_id, strlen(row->sandbox_id), sb);
    if (sb == NULL)
        return 0;
    struct monitor *m = monitor_new(sb, row->pid, row->started_ms, row->callback, row->shape, err);
    if (m == NULL)
        return -1;
    m->next = sb->monitors;
    sb->monitors = m;
    sb->monitor_count++;
    return 0;
}

static int load_port(void *ctx, const char *sandbox_id, uint64_t pid, unsigned port, bool told,
                     struct error *err)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb = NULL;
    HASH_FIND(by_id, s->ids, sandbox_id, strlen(sandbox_id), sb);
    struct monitor *m = sb == NULL ? NULL : find(sb, pid);
    struct known_port *known = m == NULL ? NULL : add_port(m, port);
    if (known != NULL)
        known->told = told;
    return 0;
}

int sandboxes_load_monitors(struct sandboxes *s, struct error *err)
{
    struct store_load_monitors load = {.monitor = load_monitor, .port = load_port, .ctx = s};
    return store_load_monitors(s->store, &load, err);
}

void sandboxes_resume_monitors(struct sandboxes *s)
{
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next) {
        struct monitor *all = steal_ptr(sb->monitors);
        sb->monitor_count = 0;
        while (all != NULL) {
            struct monitor *m = all;
            struct error err;
            all = m->next;
            if (monitor_begin(m, &err) < 0)
                log_warn("going on with a monitor: %s", err.message);
        }
    }
}

void sandbox_forget_monitors(struct sandbox *sb)
{
    while (sb->monitors != NULL) {
        struct monitor *m = sb->monitors;
        bool runs = m->co != NULL;
        monitor_dismiss(m);
        if (!runs)
            monitor_free(m);
    }
}

void sandboxes_end_monitors(struct sandboxes *s)
{
    struct error err;
    for (struct sandbox *sb = s->ids; sb != NULL; sb = sb->by_id.next)
        for (struct monitor *m = sb->monitors; m != NULL; m = m->next)
            if (m->co != NULL)
                co_cancel(m->co);
    while (s->monitors_running > 0)
        if (co_cond_wait(s->loop, &s->monitors_ended, -1, &err) < 0)
            return;
}
