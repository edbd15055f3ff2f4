/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Host names that lead to a port of a sandbox: "3000-k3vq7xabcdef.sandboxes.example". */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"

struct port_host {
    uint16_t port;
    char sandbox_id[SANDBOX_ID_LEN + 1];
};

/* What a Host field says: with or without a port, in any case, a dot at the end. False when it is
 * no such name below the domain. */
bool port_host_parse(const char *host, const char *domain, struct port_host *ret_host);

/* INVALID_ARGUMENT unless it can be followed by names of ours: DNS labels, short enough. */
int port_domain_check(const char *domain, struct error *err);
