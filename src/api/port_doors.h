/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ports of the host that lead into sandboxes: one listening socket for each published port that has
 * one (sandbox/publish.h), for HTTP or for any bytes. At most PORT_CONNECTIONS_MAX connections
 * each.
 */

#include <stdint.h>

#include "api/api.h"
#include "sandbox/publish.h"

/* Which ports of the host are for sandboxes, and on which of its addresses. */
struct door_range {
    char address[64]; /* "127.0.0.1", "[::1]"; "" with from and to 0: none are */
    uint16_t from, to;
};
/* "127.0.0.1:30000-32767", "[::]:8000-8000", "off". INVALID_ARGUMENT. */
int door_range_parse(const char *text, struct door_range *ret_range, struct error *err);

struct port_doors;

/* api and its host_address are borrowed. Never NULL. */
struct port_doors *port_doors_new(const struct api *api);
/* How sandboxes_open_ports() is told of them. */
struct port_gate port_doors_gate(struct port_doors *doors);
/* On a coroutine, after sandboxes_close_ports(): waits until the last connection is gone. */
void port_doors_wait(struct port_doors *doors);
void port_doors_free(struct port_doors *doors); /* when none is open; NULL is fine */
