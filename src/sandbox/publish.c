/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The published ports in memory: a list with each sandbox, a map by the host's port. A host's port
 * is opened before its row is written, and closed after that is gone: so what the store has is
 * never another one's, and whoever was told of a port finds it open. While the store is at work
 * others run, so nothing found before is used after it.
 */

#include "sandbox/publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/names.h"
#include "base/timetext.h"
#include "sandbox/publish_state.h"

enum { TRY_AGAIN_MS = 2000 };

static const char *const protocols[] = {[PUBLISH_HTTP] = "http", [PUBLISH_TCP] = "tcp"};
static const char *const accesses[] = {
    [PORT_PRIVATE] = "private", [PORT_TOKEN] = "token", [PORT_PUBLIC] = "public"};

const char *publish_protocol_text(enum publish_protocol protocol)
{
    return protocols[protocol];
}

const char *port_access_text(enum port_access access)
{
    return accesses[access];
}

int publish_protocol_parse(const char *text, enum publish_protocol *ret_protocol, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(protocols); i++)
        if (strcmp(protocols[i], text) == 0) {
            *ret_protocol = (enum publish_protocol)i;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "protocol: \"%.40s\" is neither \"http\" nor \"tcp\"", text);
}

int port_access_parse(const char *text, enum port_access *ret_access, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(accesses); i++)
        if (strcmp(accesses[i], text) == 0) {
            *ret_access = (enum port_access)i;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "access: \"%.40s\" is none of \"private\", \"token\" and \"public\"", text);
}

/* --- the list of a sandbox --- */

/* A few bytes, and limited in number: without them nothing sensible can go on. */
static char *copy_text(const char *text)
{
    char *made = text == NULL ? NULL : strdup(text);
    if (text != NULL && made == NULL)
        abort();
    return made;
}

static void tell(const struct published *p, struct arena *arena, struct port_info *ret_info)
{
    const struct sandbox *sb = p->sandbox;
    *ret_info = (struct port_info){
        .sandbox_id = arena_strdup(arena, sb->id),
        .sandbox_name = arena_strdup(arena, sandbox_path(sb)),
        .workspace = arena_strdup(arena, sb->workspace),
        .port = p->port,
        .protocol = p->protocol,
        .access = p->access,
        .host_port = (uint16_t)p->host_port,
        .host_error = p->host_error == NULL ? NULL : arena_strdup(arena, p->host_error),
        .command = p->command == NULL ? NULL : arena_strdup(arena, p->command),
        .generation = arena_strdup(arena, p->generation),
        .created_ms = p->created_ms,
        .updated_ms = p->updated_ms,
        .created_by = arena_strdup(arena, p->created_by),
    };
}

/* For the gate, which looks and keeps nothing. */
static struct port_info glance(const struct published *p)
{
    return (struct port_info){.sandbox_id = p->sandbox->id,
                              .workspace = p->sandbox->workspace,
                              .port = p->port,
                              .protocol = p->protocol,
                              .access = p->access,
                              .host_port = (uint16_t)p->host_port};
}

struct published *published_find(struct sandbox *sb, uint16_t port)
{
    struct published *p;
    DL_FOREACH(sb->ports, p)
    if (p->port == port)
        return p;
    return NULL;
}

static struct published *published_new(struct sandbox *sb, const struct store_port *row)
{
    struct published *p = calloc(1, sizeof(*p)), *after;
    if (p == NULL)
        abort();
    p->sandbox = sb;
    p->port = (uint16_t)row->port;
    p->host_port = row->host_port;
    p->command = copy_text(row->command);
    p->created_ms = row->created_ms;
    p->updated_ms = row->updated_ms;
    snprintf(p->generation, sizeof(p->generation), "%s", row->generation);
    snprintf(p->created_by, sizeof(p->created_by), "%s", row->created_by);
    DL_FOREACH(sb->ports, after)
    if (after->port > p->port)
        break;
    if (after != NULL)
        DL_PREPEND_ELEM(sb->ports, after, p);
    else
        DL_APPEND(sb->ports, p);
    if (p->host_port != 0)
        HASH_ADD_INT(sb->owner->host_ports.all, host_port, p);
    return p;
}

static void published_free(struct published *p)
{
    struct host_ports *host = &p->sandbox->owner->host_ports;
    const struct port_info info = glance(p);
    if (p->host_port != 0)
        HASH_DEL(host->all, p);
    if (p->open)
        host->gate.close(host->gate.ctx, &info);
    DL_DELETE(p->sandbox->ports, p);
    free(p->command);
    free(p->host_error);
    free(p);
}

static void tell_gate(const struct published *p)
{
    const struct host_ports *host = &p->sandbox->owner->host_ports;
    const struct port_info info = glance(p);
    if (host->gate.changed != NULL)
        host->gate.changed(host->gate.ctx, &info);
}

void sandbox_forget_ports(struct sandbox *sb)
{
    while (sb->ports != NULL) {
        tell_gate(sb->ports);
        published_free(sb->ports);
    }
}

/* NULL with the error set. Nothing that waits may come between this and the use of what it gives.
 */
static struct published *find(struct sandboxes *s, const char *workspace, const char *sandbox,
                              uint16_t port, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, sandbox, err);
    struct published *p = sb == NULL ? NULL : published_find(sb, port);
    if (sb != NULL && p == NULL)
        error_set(err, ERROR_PORT_NOT_PUBLISHED,
                  "port %u of sandbox \"%s\" is not published: POST /v0/sandbox/%s/ports does that",
                  port, sandbox_path(sb), sb->group == NULL ? sb->name : sb->id);
    return p;
}

static int save(struct sandboxes *s, const struct port_info *info, struct error *err)
{
    const struct store_port row = {
        .sandbox_id = info->sandbox_id,
        .port = info->port,
        .protocol = protocols[info->protocol],
        .access = accesses[info->access],
        .host_port = info->host_port,
        .command = info->command,
        .generation = info->generation,
        .created_ms = info->created_ms,
        .updated_ms = info->updated_ms,
        .created_by = info->created_by,
    };
    return store_put_port(s->store, &row, err);
}

/* --- ports of the host --- */

static int open_door(struct published *p, struct error *err)
{
    const struct host_ports *host = &p->sandbox->owner->host_ports;
    const struct port_info info = glance(p);
    if (host->gate.open == NULL)
        return error_set(err, ERROR_UNAVAILABLE, "the server is starting or shutting down");
    if (host->gate.open(host->gate.ctx, &info, err) < 0)
        return -1;
    p->open = true;
    return 0;
}

static int check_host_port(struct sandboxes *s, int host_port, struct error *err)
{
    const struct host_ports *host = &s->host_ports;
    struct published *p = NULL;
    if (host->to == 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "no ports of the host are for sandboxes (--ports of the server); with "
                         "\"hostPort\": null the port is published without one");
    if (host_port == HOST_PORT_ANY)
        return 0;
    if (host_port < host->from || host_port > host->to)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "hostPort: %d is not one of %u to %u, which are for sandboxes; 0, or "
                         "leaving it out, takes any of them",
                         host_port, host->from, host->to);
    HASH_FIND_INT(host->all, &(unsigned){(unsigned)host_port}, p);
    return p == NULL ? 0
                     : error_set(err, ERROR_PORT_IN_USE,
                                 "hostPort: %d belongs to another published port", host_port);
}

/* The next one of the range that nobody has, this server's sandboxes or other programs. */
static int take_any(struct published *p, struct error *err)
{
    struct host_ports *host = &p->sandbox->owner->host_ports;
    unsigned count = host->to - host->from + 1u;
    for (unsigned i = 0; i < count; i++) {
        struct published *other = NULL;
        unsigned host_port = host->from + (host->next + i) % count;
        HASH_FIND_INT(host->all, &host_port, other);
        if (other != NULL)
            continue;
        p->host_port = host_port;
        if (open_door(p, err) == 0) {
            host->next = (host->next + i + 1) % count;
            HASH_ADD_INT(host->all, host_port, p);
            return 0;
        }
        p->host_port = 0;
        if (err->code != ERROR_PORT_IN_USE)
            return -1;
    }
    return error_set(err, ERROR_PORT_IN_USE, "every port of the host from %u to %u is in use",
                     host->from, host->to);
}

static void open_or_note(struct published *p)
{
    const struct host_ports *host = &p->sandbox->owner->host_ports;
    struct error err = {0};
    if (p->host_port == 0 || p->open)
        return;
    if (p->host_port < host->from || p->host_port > host->to)
        error_set(&err, ERROR_UNAVAILABLE, "%u is not one of the ports that are for sandboxes now",
                  p->host_port);
    bool is_new = p->host_error == NULL;
    free(steal_ptr(p->host_error));
    if (err.code == ERROR_NONE && open_door(p, &err) == 0)
        return;
    p->host_error = copy_text(err.message);
    if (is_new)
        log_warn("port %u of sandbox %s, host's port %u: %s", p->port, p->sandbox->id, p->host_port,
                 err.message);
}

static void try_again(struct timer *timer)
{
    struct sandboxes *s = container_of(timer, struct sandboxes, host_ports.again);
    bool missing = false;
    for (struct published *p = s->host_ports.all; p != NULL; p = p->hh.next) {
        open_or_note(p);
        missing = missing || !p->open;
    }
    if (missing)
        timer_start(s->loop, timer, TRY_AGAIN_MS, try_again);
}

void sandboxes_set_host_ports(struct sandboxes *s, uint16_t from, uint16_t to)
{
    struct host_ports *host = &s->host_ports;
    host->from = from;
    host->to = to;
    /* Anywhere: several servers may share the range, and one that was just given up is not to be
     * taken for its successor. */
    if (getrandom(&host->next, sizeof(host->next), 0) != sizeof(host->next))
        host->next = 0;
    host->next %= to - from + 1u;
}

void sandboxes_open_ports(struct sandboxes *s, const struct port_gate *gate)
{
    s->host_ports.gate = *gate;
    try_again(&s->host_ports.again);
}

void sandboxes_close_ports(struct sandboxes *s)
{
    struct host_ports *host = &s->host_ports;
    timer_stop(&host->again);
    for (struct published *p = host->all; p != NULL; p = p->hh.next) {
        const struct port_info info = glance(p);
        if (p->open)
            host->gate.close(host->gate.ctx, &info);
        p->open = false;
    }
    host->gate = (struct port_gate){0};
}

/* --- calls --- */

/* A line in the sandbox's log: who has opened it to whom. Waits for the store. */
static void note(struct sandboxes *s, const struct port_info *info, const char *what,
                 const char *actor)
{
    struct sandbox *sb = sandbox_find(s, info->workspace, info->sandbox_id, NULL);
    if (sb == NULL)
        return;
    sandbox_hold(sb);
    if (info->host_port != 0)
        sandbox_note(sb, SANDBOX_LOG_INFO, "Port %u %s by %s (%s, %s on port %u of the host)",
                     info->port, what, actor, accesses[info->access], protocols[info->protocol],
                     info->host_port);
    else
        sandbox_note(sb, SANDBOX_LOG_INFO, "Port %u %s by %s (%s)", info->port, what, actor,
                     accesses[info->access]);
    sandbox_save_notes(sb);
    sandbox_drop(sb);
}

static int check_command(const char *command, struct error *err)
{
    if (command != NULL && strlen(command) > PORT_COMMAND_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "command: longer than %d bytes",
                         PORT_COMMAND_MAX);
    return 0;
}

static int check_access(enum publish_protocol protocol, enum port_access access, bool on_host,
                        struct error *err)
{
    if (protocol == PUBLISH_TCP && !on_host)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "protocol: \"tcp\" is what a port of the host speaks, and this one is to "
                         "have none");
    if (protocol == PUBLISH_TCP && access != PORT_PUBLIC)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "access: \"%s\" does not go with \"protocol\": \"tcp\", because nothing "
                         "in it shows who comes: say \"public\", or \"protocol\": \"http\"",
                         accesses[access]);
    return 0;
}

static int check_request(struct sandboxes *s, struct sandbox *sb,
                         const struct port_request *request, struct error *err)
{
    bool on_host = request->host_port != HOST_PORT_NONE;
    struct published *p;
    int count = 0;
    if (request->port == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "port: ports go from 1 to 65535");
    if (check_command(request->command, err) < 0 ||
        check_access(request->protocol, request->access, on_host, err) < 0)
        return -1;
    if (published_find(sb, request->port) != NULL)
        return error_set(err, ERROR_ALREADY_EXISTS,
                         "port %u of sandbox \"%s\" is published already", request->port,
                         sandbox_path(sb));
    DL_COUNT(sb->ports, p, count);
    if (count >= PORTS_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "sandbox \"%s\" has %d published ports already",
                         sandbox_path(sb), PORTS_MAX);
    return on_host ? check_host_port(s, request->host_port, err) : 0;
}

static struct published *publish(struct sandbox *sb, const struct port_request *request,
                                 struct error *err)
{
    char generation[PORT_GENERATION_LEN + 1];
    random_id(generation, PORT_GENERATION_LEN);
    int64_t now = time_now_ms();
    const struct store_port row = {
        .port = request->port,
        .host_port = request->host_port > 0 ? (unsigned)request->host_port : 0,
        .command = request->command,
        .generation = generation,
        .created_ms = now,
        .updated_ms = now,
        .created_by = request->actor,
    };
    struct published *p = published_new(sb, &row);
    p->protocol = request->protocol;
    p->access = request->access;
    int rc = 0;
    if (request->host_port == HOST_PORT_ANY)
        rc = take_any(p, err);
    else if (request->host_port > 0)
        rc = open_door(p, err);
    if (rc == 0)
        return p;
    published_free(p);
    return NULL;
}

int ports_publish(struct sandboxes *s, const char *workspace, const char *sandbox,
                  const struct port_request *request, struct arena *arena,
                  struct port_info *ret_info, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, sandbox, err);
    if (sb == NULL || check_request(s, sb, request, err) < 0)
        return -1;
    struct published *p = publish(sb, request, err);
    if (p == NULL)
        return -1;
    struct port_info info;
    tell(p, arena, &info);
    if (save(s, &info, err) < 0) {
        p = find(s, info.workspace, info.sandbox_id, info.port, NULL);
        if (p != NULL && strcmp(p->generation, info.generation) == 0)
            published_free(p);
        return -1;
    }
    note(s, &info, "published", request->actor);
    *ret_info = info;
    return 0;
}

int ports_list(struct sandboxes *s, const char *workspace, const char *sandbox, struct arena *arena,
               struct port_info **ret_items, size_t *ret_count, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, sandbox, err);
    if (sb == NULL)
        return -1;
    struct port_info *items = arena_alloc(arena, (PORTS_MAX + 1) * sizeof(*items));
    struct published *p;
    size_t count = 0;
    DL_FOREACH(sb->ports, p)
    tell(p, arena, &items[count++]);
    *ret_items = items;
    *ret_count = count;
    return 0;
}

int ports_get(struct sandboxes *s, const char *workspace, const char *sandbox, uint16_t port,
              struct arena *arena, struct port_info *ret_info, struct error *err)
{
    const struct published *p = find(s, workspace, sandbox, port, err);
    if (p == NULL)
        return -1;
    tell(p, arena, ret_info);
    return 0;
}

/* Writes what is to be, then takes it over; whoever was let in by what was has to come again. */
static int take_over(struct sandboxes *s, struct port_info *info, struct error *err)
{
    info->updated_ms = time_now_ms();
    if (save(s, info, err) < 0)
        return -1;
    struct published *p = find(s, info->workspace, info->sandbox_id, info->port, err);
    if (p == NULL)
        return -1;
    bool changed = p->access != info->access || strcmp(p->generation, info->generation) != 0;
    p->access = info->access;
    p->updated_ms = info->updated_ms;
    snprintf(p->generation, sizeof(p->generation), "%s", info->generation);
    if (p->command == NULL || info->command == NULL || strcmp(p->command, info->command) != 0)
        p->started_ms = 0; /* another one has its own chance */
    free(p->command);
    p->command = copy_text(info->command);
    if (changed)
        tell_gate(p);
    return 0;
}

int ports_change(struct sandboxes *s, const char *workspace, const char *sandbox, uint16_t port,
                 const struct port_change *change, struct arena *arena, struct port_info *ret_info,
                 struct error *err)
{
    struct port_info info;
    if (check_command(change->command, err) < 0 ||
        ports_get(s, workspace, sandbox, port, arena, &info, err) < 0)
        return -1;
    if (change->access != NULL)
        info.access = *change->access;
    if (change->command != NULL)
        info.command = change->command[0] == '\0' ? NULL : arena_strdup(arena, change->command);
    if (check_access(info.protocol, info.access, info.host_port != 0, err) < 0 ||
        take_over(s, &info, err) < 0)
        return -1;
    note(s, &info, "changed", change->actor);
    *ret_info = info;
    return 0;
}

int ports_revoke(struct sandboxes *s, const char *workspace, const char *sandbox, uint16_t port,
                 const char *actor, struct arena *arena, struct port_info *ret_info,
                 struct error *err)
{
    struct port_info info;
    char *generation = arena_alloc(arena, PORT_GENERATION_LEN + 1);
    if (ports_get(s, workspace, sandbox, port, arena, &info, err) < 0)
        return -1;
    random_id(generation, PORT_GENERATION_LEN);
    info.generation = generation;
    if (take_over(s, &info, err) < 0)
        return -1;
    note(s, &info, "closed to its tokens", actor);
    *ret_info = info;
    return 0;
}

int ports_unpublish(struct sandboxes *s, const char *workspace, const char *sandbox, uint16_t port,
                    const char *actor, struct arena *arena, struct port_info *ret_info,
                    struct error *err)
{
    struct port_info info;
    if (ports_get(s, workspace, sandbox, port, arena, &info, err) < 0 ||
        store_delete_port(s->store, info.sandbox_id, port, err) < 0)
        return -1;
    struct published *p = find(s, info.workspace, info.sandbox_id, port, NULL);
    if (p != NULL) {
        tell_gate(p);
        published_free(p);
    }
    note(s, &info, "unpublished", actor);
    *ret_info = info;
    return 0;
}

int port_find(struct sandboxes *s, const char *sandbox_id, uint16_t port, struct arena *arena,
              struct port_info *ret_info, struct error *err)
{
    struct sandbox *sb = NULL;
    HASH_FIND(by_id, s->ids, sandbox_id, strlen(sandbox_id), sb);
    if (sb == NULL)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "there is no sandbox \"%.40s\"", sandbox_id);
    const struct published *p = published_find(sb, port);
    if (p != NULL) {
        tell(p, arena, ret_info);
        return 0;
    }
    *ret_info = (struct port_info){
        .sandbox_id = arena_strdup(arena, sb->id),
        .sandbox_name = arena_strdup(arena, sandbox_path(sb)),
        .workspace = arena_strdup(arena, sb->workspace),
        .port = port,
        .generation = "",
        .created_by = "",
    };
    return 0;
}

/* --- start-up --- */

static int load_port(void *ctx, const struct store_port *row, struct error *err)
{
    struct sandboxes *s = ctx;
    struct sandbox *sb = NULL;
    enum publish_protocol protocol;
    enum port_access access;
    HASH_FIND(by_id, s->ids, row->sandbox_id, strlen(row->sandbox_id), sb);
    if (sb == NULL || published_find(sb, (uint16_t)row->port) != NULL)
        return 0;
    if (publish_protocol_parse(row->protocol, &protocol, err) < 0 ||
        port_access_parse(row->access, &access, err) < 0)
        return error_prefix(err, "port %u of sandbox %s in the database", row->port,
                            row->sandbox_id);
    struct published *p = published_new(sb, row);
    p->protocol = protocol;
    p->access = access;
    return 0;
}

int sandboxes_load_ports(struct sandboxes *s, struct error *err)
{
    return store_load_ports(s->store, load_port, s, err);
}
