/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whom the server may be made to call by a stranger's request: addresses of the public Internet,
 * and none of this machine's own. Everything else (loopback, private, link-local and shared ranges,
 * metadata services, multicast, and IPv6 forms that carry an IPv4 address inside) is refused.
 */

#include <stdbool.h>
#include <sys/socket.h>

/* By the registries of special-purpose addresses (RFC 6890 and its successors). Other families than
 * IPv4 and IPv6 are not public. */
bool address_is_public(const struct sockaddr *address);

/* Whether an interface of this machine has it, public or not. True when that cannot be found out.
 */
bool address_is_ours(const struct sockaddr *address);
