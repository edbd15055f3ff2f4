/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* spec.network: what a sandbox may reach, as network/policy.h has it. */

#include "json/json.h"
#include "sandbox/sandbox.h"

/*
 * Reads {mode, allow, deny, headers, ipv6, bandwidth: {in, out}}; NULL: not given. The bandwidth
 * goes where spec.resources.networkIn and networkOut do: INVALID_ARGUMENT when they differ. What
 * rules mean is the domain's.
 */
int network_from_json(struct arena *arena, yyjson_val *object, struct network_request *ret_request,
                      struct sandbox_resources *resources, struct error *err);

/* Adds "network" to a spec. */
void network_to_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *spec,
                     const struct sandbox_info *info);
/* The allow list of a policy in that mode, as spec.security.allowed_hosts shows it. */
yyjson_mut_val *network_hosts_json(yyjson_mut_doc *doc, struct slice policy);

/* An array of strings as a list (base/slice.h) in the arena. INVALID_ARGUMENT names `where`. */
int network_list_from_json(struct arena *arena, yyjson_val *array, const char *where,
                           struct slice *ret_list, struct error *err);
