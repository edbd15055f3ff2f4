/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One question, asked until a server answers it: over UDP, and over TCP where that is too small. */

#include "egress/resolver.h"

int resolver_ask_addresses(struct resolver *resolver, const char *name, uint16_t type,
                           struct dns_answer *ret_answer, struct error *err);
int resolver_ask_records(struct resolver *resolver, const struct dns_query *query, struct buf *out,
                         struct error *err);
