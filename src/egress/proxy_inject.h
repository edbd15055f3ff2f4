/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections of the proxies to hosts whose requests get a secret: judged as all others are, and
 * then served by egress/inject.h. */

#include "egress/proxy.h"

/* Whether requests to this host get one; whether TLS to it ends here. */
bool proxy_has_secret(const struct proxied *p, const char *name);
bool proxy_ends_tls(const struct proxied *p, const char *name);

/* Serves the connection, of which `early` was read already. Not NET_ALLOWED: it was refused, which
 * is written down and has not been told to the sandbox. */
enum net_verdict proxy_inject(struct proxied *p, const char *name, struct slice early, bool tls);
