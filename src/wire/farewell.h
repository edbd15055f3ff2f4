/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the server is told what becomes of its sandboxes when it ends.
 *
 *   SERVER_KEEP   to the supervisor, which passes it on to cellad: from now on the server leaves
 * its sandboxes running when it ends, as with --keep-sandboxes. A service manager sends it before
 * the SIGTERM of a restart
 *
 * How the supervisor has the warden end:
 *
 *   SIGTERM       ends every sandbox, and takes back all that the warden has made: mounts, the loop
 *                 device, cgroups, the network
 *   WARDEN_LEAVE  leaves sandboxes that run as they are, with all of that, for the next warden to
 *                 adopt; where none runs it is a SIGTERM, so that nothing is left for nobody
 */

#include <signal.h>

#define SERVER_KEEP  SIGUSR1
#define WARDEN_LEAVE SIGUSR1
