/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the supervisor has the warden end.
 *
 *   SIGTERM       ends every sandbox, and takes back all that the warden has made: mounts, the loop
 *                 device, cgroups, the network
 *   WARDEN_LEAVE  leaves sandboxes that run as they are, with all of that, for the next warden to
 *                 adopt; where none runs it is a SIGTERM, so that nothing is left for nobody
 */

#include <signal.h>

#define WARDEN_LEAVE SIGUSR1
