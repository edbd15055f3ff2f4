/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a sandbox's headers hold, for the egress process: between who knows policies (sandbox/) and
 * who knows secrets (auth/). */

#include "sandbox/network.h"

/* For sandboxes_set_secrets(); ctx is the struct auth. */
network_secrets secret_source_fill;
network_secret_check secret_source_check;
