/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a command goes without, by the rules of its sandbox. Carried out in the command's own child,
 * after it has become its user and before exec: the agent itself keeps what it needs to do its
 * work, and a rule that cannot be carried out ends the child.
 */

#include <stdbool.h>

struct confinement {
    bool no_subprocess;   /* threads only: a filter that outlives exec */
    bool no_capabilities; /* none, in any set; the bounding set was emptied by the warden */
};

/* SPAWN_CODE (spawn.h): bare system calls. Returns 0, or the negative errno of what failed. */
long confine(const struct confinement *confinement);
