/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "floor/host.h"
#include "floor/sandbox.h"

/* Order of the mounts that come over the control socket. */
enum { MOUNT_ROOT, MOUNT_USR, MOUNT_DEV, MOUNT_COUNT };

/* The half of the recipe that happens inside the new namespaces; ends in the init's exec. Never
 * returns: an error goes down the control socket as a struct error, and the process exits. */
_Noreturn void child_run(const struct host *host, const struct sandbox *sandbox, int control);
