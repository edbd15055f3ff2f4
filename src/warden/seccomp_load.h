/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Loads the sandbox's system call filter (seccomp_table.h) for this process and all after it.
 * Needs CAP_SYS_ADMIN in its user namespace, or no_new_privs. */

#include "base/error.h"

int seccomp_load_sandbox(struct error *err);
