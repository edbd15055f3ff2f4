/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the handlers of /process share. */

#include "api/call.h"
#include "http/router.h"
#include "sandbox/processes.h"

/* The route's {pid}; INVALID_ARGUMENT when it is no number. */
int process_pid(const struct route_params *params, uint64_t *ret_pid, struct error *err);
