/* SPDX-License-Identifier: Apache-2.0 */

/* Ports of processes. The kernel has no event for a socket that begins to listen, so waiting for
 * one is asking again, seldom enough to cost nothing. */

#include "sandbox/ports.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "loop/co.h"
#include "sandbox/process_ref.h"
#include "sandbox/processes.h"
#include "sandbox/state.h"

enum {
    ANSWER_MS = 30 * 1000,
    PAUSE_FIRST_MS = 10,
    PAUSE_MOST_MS = 200,
};

struct port_items {
    struct agent_port *items;
    size_t count;
};

static int add_port(void *ctx, const void *item, struct error *err)
{
    struct port_items *list = ctx;
    const struct agent_port *port = item;
    if (port->port == 0 || port->port > UINT16_MAX ||
        (port->protocol != PORT_TCP && port->protocol != PORT_UDP) ||
        (port->address.len != 4 && port->address.len != 16))
        return error_set(err, ERROR_UNAVAILABLE, "the sandbox tells of a port that cannot be");
    list->items[list->count++] = *port;
    return 0;
}

static int by_number(const void *one, const void *other)
{
    const struct agent_port *a = one, *b = other;
    if (a->protocol != b->protocol)
        return a->protocol < b->protocol ? -1 : 1;
    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    if (a->address.len != b->address.len)
        return a->address.len < b->address.len ? -1 : 1;
    return memcmp(a->address.data, b->address.data, a->address.len);
}

int sandbox_process_ports(struct sandboxes *s, const char *workspace, const char *name,
                          const char *process, struct arena *arena, struct agent_port **ret_ports,
                          size_t *ret_count, struct error *err)
{
    _cleanup_sandbox_ struct sandbox *sb = NULL;
    struct channel *channel;
    struct agent_ref request;
    struct port_items list = {
        .items = arena_alloc(arena, (PROCESS_PORTS_MAX + 1) * sizeof(*list.items))};
    if (process_ref(process, &request, err) < 0 ||
        sandbox_agent(s, workspace, name, &sb, &channel, err) < 0 ||
        channel_list(channel, &agent_ports_schema, &request, &agent_port_schema, arena,
                     PROCESS_PORTS_MAX, add_port, &list, ANSWER_MS, err) < 0)
        return -1;
    qsort(list.items, list.count, sizeof(*list.items), by_number);
    size_t kept = 0;
    for (size_t i = 0; i < list.count; i++)
        if (kept == 0 || by_number(&list.items[kept - 1], &list.items[i]) != 0)
            list.items[kept++] = list.items[i];
    *ret_ports = list.items;
    *ret_count = kept;
    return 0;
}

void port_address_text(const struct agent_port *port, char out[PORT_ADDRESS_MAX])
{
    if (inet_ntop(port->address.len == 16 ? AF_INET6 : AF_INET, port->address.data, out,
                  PORT_ADDRESS_MAX) == NULL)
        out[0] = '\0';
}

bool port_is_loopback(const struct agent_port *port)
{
    const unsigned char *a = (const unsigned char *)port->address.data;
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const unsigned char one[16] = {[15] = 1};
    if (port->address.len == 4)
        return a[0] == 127;
    return memcmp(a, one, sizeof(one)) == 0 ||
           (memcmp(a, mapped, sizeof(mapped)) == 0 && a[12] == 127);
}

static bool all_listen(const struct ports_wait *wait, const struct agent_port *ports, size_t count)
{
    for (size_t i = 0; i < wait->count; i++) {
        bool found = false;
        for (size_t k = 0; k < count && !found; k++)
            found = ports[k].protocol == PORT_TCP && ports[k].port == wait->ports[i] &&
                    (wait->loopback_counts || !port_is_loopback(&ports[k]));
        if (!found)
            return false;
    }
    return true;
}

/* One look. Its memory goes at once: there may be many. */
static int look(struct sandboxes *s, const char *workspace, const char *name, const char *process,
                const struct ports_wait *wait, bool *ret_done, struct error *err)
{
    struct arena *arena = arena_new();
    struct agent_process now;
    struct agent_port *ports;
    size_t count;
    int rc = sandbox_process_get(s, workspace, name, process, arena, &now, err);
    if (rc == 0)
        rc = sandbox_process_ports(s, workspace, name, process, arena, &ports, &count, err);
    if (rc == 0)
        *ret_done = now.state != PROCESS_RUNNING || all_listen(wait, ports, count);
    arena_free(arena);
    return rc;
}

int sandbox_process_wait_ports(struct sandboxes *s, const char *workspace, const char *name,
                               const char *process, const struct ports_wait *wait,
                               struct arena *arena, struct agent_process *ret_process,
                               struct error *err)
{
    int64_t deadline = loop_now(s->loop) + wait->wait_ms, pause = PAUSE_FIRST_MS;
    for (;;) {
        bool done = false;
        if (look(s, workspace, name, process, wait, &done, err) < 0)
            return -1;
        if (done)
            return sandbox_process_get(s, workspace, name, process, arena, ret_process, err);
        if (wait->wait_ms >= 0 && loop_now(s->loop) >= deadline)
            return error_set(err, ERROR_WAIT_TIMEOUT,
                             "the process does not listen on all of waitForPorts after %lld s; it "
                             "goes on, and can still be asked for",
                             (long long)(wait->wait_ms / 1000));
        if (co_sleep(s->loop, pause, err) < 0)
            return -1;
        pause = pause * 3 / 2 < PAUSE_MOST_MS ? pause * 3 / 2 : PAUSE_MOST_MS;
    }
}
