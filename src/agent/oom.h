/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a SIGKILL came from the memory limit. */

#include <stdbool.h>

struct agent;

/* True when the kernel has killed for memory in the sandbox's cgroup more often than was
 * accounted for; counts one. Only cgroup v2 with the memory controller shows it in here. */
bool oom_happened(struct agent *agent);
