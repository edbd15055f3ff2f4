/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Doors: a listening socket and those who came through it. A door of HTTP is a server of its own,
 * whose requests are all for one port; a door of bytes joins each connection with a stream into the
 * sandbox. A door is shut at once (its port is free when the call returns) and gone when the last
 * of its connections has ended, which a coroutine sees to.
 */

#include "api/port_doors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "api/forwarded.h"
#include "api/port_serve.h"
#include "api/record_connection.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/log.h"
#include "http/server.h"
#include "loop/acceptor.h"
#include "loop/address.h"
#include "loop/co.h"
#include "loop/net.h"
#include "sandbox/tunnel.h"

enum {
    BACKLOG = 128,
    PORT_FIRST = 1024, /* below, this process could not listen */
};

struct door {
    struct port_doors *owner;
    char sandbox_id[SANDBOX_ID_LEN + 1];
    char workspace[NAME_MAX_LEN + 1];
    uint16_t port, host_port;
    struct http_server *server; /* of HTTP */
    struct acceptor *bytes;     /* of anything else */
    struct door *prev, *next;
};

struct port_doors {
    const struct api *api;
    struct door *open;
    unsigned closing; /* shut, but not gone */
    struct co_cond gone;
};

/* --- which ports --- */

static bool take_number(const char **at, uint16_t *ret_number)
{
    unsigned long number = 0;
    const char *from = *at;
    for (; **at >= '0' && **at <= '9' && number <= UINT16_MAX; (*at)++)
        number = number * 10 + (unsigned long)(**at - '0');
    *ret_number = (uint16_t)number;
    return *at != from && number <= UINT16_MAX;
}

int door_range_parse(const char *text, struct door_range *ret_range, struct error *err)
{
    struct door_range range = {0};
    const char *colon = strrchr(text, ':'), *at = colon == NULL ? "" : colon + 1;
    struct socket_address address;
    if (strcmp(text, "off") == 0) {
        *ret_range = range;
        return 0;
    }
    bool whole = take_number(&at, &range.from) && *at == '-';
    at += whole;
    if (!whole || !take_number(&at, &range.to) || *at != '\0' || range.from < PORT_FIRST ||
        range.to < range.from)
        return error_set(
            err, ERROR_INVALID_ARGUMENT,
            "\"%.60s\" is neither off nor ADDRESS:FROM-TO with ports from %d to 65535, "
            "such as " DEFAULT_PORTS,
            text, PORT_FIRST);
    char first[sizeof(range.address) + 8];
    snprintf(range.address, sizeof(range.address), "%.*s", (int)(colon - text), text);
    snprintf(first, sizeof(first), "%s:%u", range.address, range.from);
    if (strncmp(first, "unix:", 5) == 0 || socket_address_parse(first, &address, err) < 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.60s\" is not an address of the host",
                         range.address);
    *ret_range = range;
    return 0;
}

/* --- HTTP --- */

static int serve_http(struct http_exchange *x, void *ctx, struct error *err)
{
    const struct door *door = ctx;
    /* The door may be shut, and its sandbox gone, while this goes on; it itself stays. */
    const struct port_visit visit = {
        .sandbox_id = door->sandbox_id, .port = door->port, .plain = true};
    const struct api *api = door->owner->api;
    forwarded_settle(x, api->proxies);
    record_begin(x, api, &dialect_cella);
    if (record_visit(x, door->sandbox_id, err) == 0 && port_serve(x, api, &visit, err) == 0)
        return 0;
    api_failed(x, api, err);
    return -1;
}

static int open_http(struct door *door, int fd, struct error *err)
{
    const struct http_limits limits = {.connections_max = PORT_CONNECTIONS_MAX};
    door->server = http_server_new(door->owner->api->loop, serve_http, door, &limits, err);
    if (door->server == NULL) {
        close(fd);
        return -1;
    }
    if (http_server_add(door->server, fd, err) == 0)
        return 0;
    http_server_free(door->server);
    return -1;
}

/* --- bytes --- */

static int join(const struct door *door, struct recorded_connection *visit, int fd,
                struct error *err)
{
    const struct api *api = door->owner->api;
    __attribute__((cleanup(cleanup_tunnel))) struct tunnel *tunnel = NULL;
    bool in = record_connection_begin(visit, err) == 0 &&
              sandbox_tunnel(api->sandboxes, door->workspace, door->sandbox_id, door->port, false,
                             &tunnel, err) == 0;
    record_connection_tell(visit, in ? NULL : err);
    if (!in)
        return -1;
    return net_relay(api->loop, fd, tunnel_fd(tunnel), TUNNEL_IDLE_MS, err);
}

static void serve_bytes(void *ctx, int fd)
{
    const struct door *door = ctx;
    struct error err = {0};
    char peer[SOCKET_ADDRESS_TEXT_SIZE];
    struct socket_address from = {.len = sizeof(from.as)};
    if (getpeername(fd, &from.as.any, &from.len) < 0)
        return; /* it is gone */
    socket_address_text(&from, peer);
    struct recorded_connection visit = {.recorder = door->owner->api->recorder,
                                        .address = peer,
                                        .workspace = door->workspace,
                                        .sandbox_id = door->sandbox_id,
                                        .port = door->port};
    if (join(door, &visit, fd, &err) < 0)
        log_debug("host's port %u: %s: %s", door->host_port, error_name(err.code), err.message);
    record_connection_end(&visit);
}

static int open_bytes(struct door *door, int fd, struct error *err)
{
    return acceptor_new(door->owner->api->loop, fd, PORT_CONNECTIONS_MAX, serve_bytes, door,
                        &door->bytes, err);
}

/* --- opening and shutting --- */

static int open_door(void *ctx, const struct port_info *info, struct error *err)
{
    struct port_doors *doors = ctx;
    char address[80];
    int fd;
    snprintf(address, sizeof(address), "%s:%u", doors->api->host_address, info->host_port);
    if (net_listen(address, BACKLOG, &fd, NULL, err) < 0)
        return err->sys == EADDRINUSE
                   ? error_set(err, ERROR_PORT_IN_USE, "another program has port %u of the host",
                               info->host_port)
                   : error_set(err, ERROR_UNAVAILABLE, "%s", err->message);
    struct door *door = calloc(1, sizeof(*door));
    if (door == NULL)
        abort();
    *door = (struct door){.owner = doors, .port = info->port, .host_port = info->host_port};
    snprintf(door->sandbox_id, sizeof(door->sandbox_id), "%s", info->sandbox_id);
    snprintf(door->workspace, sizeof(door->workspace), "%s", info->workspace);
    if ((info->protocol == PUBLISH_HTTP ? open_http : open_bytes)(door, fd, err) < 0) {
        free(door);
        return -1;
    }
    DL_APPEND(doors->open, door);
    return 0;
}

/* A coroutine: its beginning, up to the first wait, is done when close_door() returns. */
static void shut(void *arg)
{
    struct door *door = arg;
    struct port_doors *doors = door->owner;
    if (door->server != NULL) {
        http_server_shutdown(door->server, 0);
        http_server_free(door->server);
    } else {
        acceptor_end(door->bytes);
    }
    free(door);
    doors->closing--;
    co_cond_wake_all(&doors->gone);
}

static void close_door(void *ctx, const struct port_info *info)
{
    struct port_doors *doors = ctx;
    struct door *door;
    struct error err;
    DL_FOREACH(doors->open, door)
    if (door->host_port == info->host_port)
        break;
    if (door == NULL)
        return;
    DL_DELETE(doors->open, door);
    doors->closing++;
    if (co_spawn(doors->api->loop, shut, door, NULL, &err) < 0) {
        log_error("closing port %u of the host: %s", info->host_port, err.message);
        abort(); /* out of memory; it must not stay open */
    }
}

static void cut_off(void *ctx, const struct port_info *info)
{
    const struct port_doors *doors = ctx;
    port_serve_end(doors->api, info->sandbox_id, info->port);
}

struct port_doors *port_doors_new(const struct api *api)
{
    struct port_doors *doors = calloc(1, sizeof(*doors));
    if (doors == NULL)
        abort();
    doors->api = api;
    return doors;
}

struct port_gate port_doors_gate(struct port_doors *doors)
{
    return (struct port_gate){
        .open = open_door, .close = close_door, .changed = cut_off, .ctx = doors};
}

void port_doors_wait(struct port_doors *doors)
{
    struct error err;
    while (doors->closing > 0)
        if (co_cond_wait(doors->api->loop, &doors->gone, -1, &err) < 0)
            return;
}

void port_doors_free(struct port_doors *doors)
{
    free(doors);
}
