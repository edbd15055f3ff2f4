/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ports that processes of a sandbox listen on. On coroutines. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox/sandbox.h"
#include "wire/messages.h"

/* Of a process (its pid or name) and all its children: TCP sockets that listen, UDP ones that are
 * bound. Sorted by protocol, port and address, each once. */
int sandbox_process_ports(struct sandboxes *s, const char *workspace, const char *name,
                          const char *process, struct arena *arena, struct agent_port **ret_ports,
                          size_t *ret_count, struct error *err);

/* "127.0.0.1", "::" */
enum { PORT_ADDRESS_MAX = 46 };
void port_address_text(const struct agent_port *port, char out[PORT_ADDRESS_MAX]);
bool port_is_loopback(const struct agent_port *port);

struct ports_wait {
    const uint16_t *ports; /* all of them have to be listened on, with TCP */
    size_t count;
    bool loopback_counts; /* else a listener on 127.0.0.1 or ::1 alone is none */
    int64_t wait_ms;      /* WAIT_TIMEOUT after so long; -1: never */
};
/* Returns when the process or its children listen on them all, or it has ended (ret_process tells).
 */
int sandbox_process_wait_ports(struct sandboxes *s, const char *workspace, const char *name,
                               const char *process, const struct ports_wait *wait,
                               struct arena *arena, struct agent_process *ret_process,
                               struct error *err);
