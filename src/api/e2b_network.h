/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * E2B's way to say what a sandbox may reach: {allowOut, denyOut} and allow_internet_access. What is
 * allowed wins over what is denied, and what is neither is allowed; so it is an allow list where
 * everything is denied ("0.0.0.0/0", or no Internet access), and the public Internet with
 * exceptions otherwise. An allow list of nothing still has a network, whose rules can be changed
 * while it runs.
 */

#include "json/json.h"
#include "sandbox/network.h"

/* network may be NULL; internet: what allow_internet_access says, true where it does not. The
 * request replaces everything. `rules` become headers of requests to hosts. INVALID_ARGUMENT names
 * the member, also one that cannot be had here (egressProxy, httpsPorts); those that are about
 * ports (allowPublicTraffic, maskRequestHost) are read elsewhere. */
int e2b_network_request(struct arena *arena, yyjson_val *network, bool internet,
                        struct network_request *ret_request, struct error *err);
