/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Published ports: what is known of a port of a sandbox besides its number. Who may connect to it
 * (private: who has a key of the workspace, as with every port that is not published; token: who
 * holds a token for it, too; public: everybody), whether a port of the host leads to it, and which
 * command serves it when nothing listens there yet. They are gone with their sandbox, are not
 * cloned, and survive the server.
 *
 * A port of the host belongs to one published port for as long as that exists, whether the sandbox
 * runs or not. Listening there is done by somebody else, the gate: HTTP is not known in here.
 *
 * On coroutines. What is handed out is a copy in the caller's arena.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

enum publish_protocol { PUBLISH_HTTP, PUBLISH_TCP };
enum port_access { PORT_PRIVATE, PORT_TOKEN, PORT_PUBLIC };

/* "http", …, "private", …; INVALID_ARGUMENT lists those that there are. */
const char *publish_protocol_text(enum publish_protocol protocol);
const char *port_access_text(enum port_access access);
int publish_protocol_parse(const char *text, enum publish_protocol *ret_protocol,
                           struct error *err);
int port_access_parse(const char *text, enum port_access *ret_access, struct error *err);

struct port_info {
    const char *sandbox_id, *sandbox_name, *workspace;
    uint16_t port;
    enum publish_protocol protocol;
    enum port_access access;
    uint16_t host_port;     /* 0: none */
    const char *host_error; /* why nobody listens on that; NULL: somebody does */
    const char *command;    /* NULL: none */
    const char *generation; /* another one makes all tokens worthless; "": it is not published */
    int64_t created_ms, updated_ms;
    const char *created_by;
};

enum { HOST_PORT_NONE = -1, HOST_PORT_ANY = 0 };

struct port_request {
    uint16_t port;
    enum publish_protocol protocol; /* what is spoken on the host's port */
    enum port_access access;
    int host_port;       /* one of the range, HOST_PORT_ANY, HOST_PORT_NONE */
    const char *command; /* NULL: none */
    const char *actor;
};

struct port_change {
    const enum port_access *access; /* NULL: as it is */
    const char *command;            /* NULL: as it is; "": none */
    const char *actor;
};

/*
 * SANDBOX_NOT_FOUND, ALREADY_EXISTS, LIMIT_EXCEEDED over PORTS_MAX; INVALID_ARGUMENT: a host's port
 * outside of the range, or raw TCP on one that is not public (bytes show no key). PORT_IN_USE: the
 * host's port is somebody else's, or all are.
 */
int ports_publish(struct sandboxes *s, const char *workspace, const char *sandbox,
                  const struct port_request *request, struct arena *arena,
                  struct port_info *ret_info, struct error *err);
/* By number. */
int ports_list(struct sandboxes *s, const char *workspace, const char *sandbox, struct arena *arena,
               struct port_info **ret_items, size_t *ret_count, struct error *err);
/* PORT_NOT_PUBLISHED, here and below. */
int ports_get(struct sandboxes *s, const char *workspace, const char *sandbox, uint16_t port,
              struct arena *arena, struct port_info *ret_info, struct error *err);
int ports_change(struct sandboxes *s, const char *workspace, const char *sandbox, uint16_t port,
                 const struct port_change *change, struct arena *arena, struct port_info *ret_info,
                 struct error *err);
/* Every token that was handed out for it is worthless afterwards. */
int ports_revoke(struct sandboxes *s, const char *workspace, const char *sandbox, uint16_t port,
                 const char *actor, struct arena *arena, struct port_info *ret_info,
                 struct error *err);
int ports_unpublish(struct sandboxes *s, const char *workspace, const char *sandbox, uint16_t port,
                    const char *actor, struct arena *arena, struct port_info *ret_info,
                    struct error *err);

/* For whoever comes from outside, by the sandbox's id: what is known of the port. One that is not
 * published is private. SANDBOX_NOT_FOUND. */
int port_find(struct sandboxes *s, const char *sandbox_id, uint16_t port, struct arena *arena,
              struct port_info *ret_info, struct error *err);

/* --- ports of the host --- */

/* Who listens there. Neither call waits. */
struct port_gate {
    /* PORT_IN_USE when another program has it. */
    int (*open)(void *ctx, const struct port_info *info, struct error *err);
    void (*close)(void *ctx, const struct port_info *info);
    /* The port is not open any more to those who were let in. */
    void (*changed)(void *ctx, const struct port_info *info);
    void *ctx;
};

/* Ports from…to are for sandboxes (0, 0: none is). Before sandboxes_recover(). */
void sandboxes_set_host_ports(struct sandboxes *s, uint16_t from, uint16_t to);
/* After sandboxes_recover(): opens all that are there; one that cannot be had is tried again. */
void sandboxes_open_ports(struct sandboxes *s, const struct port_gate *gate);
/* Closes all; nothing opens any more. */
void sandboxes_close_ports(struct sandboxes *s);
