/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Networks of E2B's sandboxes, for other handlers. */

#include "api/call.h"
#include "sandbox/sandbox.h"

/* Where requests of a sandbox that runs are sent with headers of its rules, has programs inside
 * believe whoever adds them to TLS. What goes wrong is logged: plain HTTP works all the same. */
void e2b_network_trust(struct http_exchange *x, const struct api_call *call,
                       const struct sandbox_info *info);
