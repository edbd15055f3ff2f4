/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* spec.trustLevel and spec.security: the options of sandbox/trust.h under the names that they have
 * there. */

#include "api/call.h"
#include "json/json.h"
#include "sandbox/trust.h"

/*
 * Either may be NULL: not given. null and what only answers have (capabilities,
 * enforcement) are passed over. UNKNOWN_FIELD lists the options there are; INVALID_ARGUMENT says
 * what a value should be.
 */
int security_from_json(struct arena *arena, const char *level, yyjson_val *options,
                       struct trust_request *ret_request, struct error *err);

/* Who may administer the workspace may loosen. */
bool security_may_loosen(const struct api_call *call);

/* Adds both to a spec: everything that is in force, and a word where it differs from the level.
 * network: the policy, packed, whose allow list is allowed_hosts. */
void security_to_json(yyjson_mut_doc *doc, yyjson_mut_val *spec,
                      const struct trust_options *options, struct slice network);
