/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The ports that somebody has listed for a sandbox. Every port of a sandbox is reached by
 * getHost(port) whether it is listed or not: the list is for people and programs that read it.
 */

#include <stdint.h>

#include "api/e2b/spec.h"
#include "base/limits.h"

struct scalebox_port {
    uint16_t port;
    const char *name;
};

struct scalebox_ports {
    size_t count;
    struct scalebox_port items[SCALEBOX_PORTS_MAX];
};

/* One of a request: {"port", "name", "protocol", "service_port", "is_protected"}. INVALID_ARGUMENT
 * for what cannot be had: UDP, another port outside than inside, one that is closed to some. */
int scalebox_port_from_json(struct arena *arena, yyjson_val *object, const char *where,
                            struct scalebox_port *ret_port, struct error *err);
/* Adds it. ALREADY_EXISTS, LIMIT_EXCEEDED. */
int scalebox_ports_add(struct scalebox_ports *ports, const struct scalebox_port *port,
                       struct error *err);

/* As they are kept with the sandbox, and back. */
void scalebox_ports_read(const struct e2b_spec *spec, struct scalebox_ports *ret_ports);
void scalebox_ports_keep(struct arena *arena, const struct scalebox_ports *ports,
                         struct e2b_spec *spec);

/* Adds "ports", "template_ports" and "custom_ports". */
void scalebox_ports_json(yyjson_mut_doc *doc, yyjson_mut_val *object,
                         const struct scalebox_ports *ports);
