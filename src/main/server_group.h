/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory cgroups for the server's own unprivileged processes: "cella-<instance>-server" for cellad
 * and what it starts (git), "cella-<instance>-egress" for the egress process. Whatever goes wrong
 * in one of them ends that process, which the supervisor starts again, and not another program of
 * the machine.
 *
 * The group lies at the root of the tree that has the memory controller, v1 or v2, as sandboxes'
 * do. Where it cannot be made (in many containers) the process runs without one.
 */

#include <stdint.h>

#include "base/error.h"

struct server_group {
    int mount; /* root of the tree; -1: there is no group */
    int procs; /* where a process enters */
    char name[64];
};

#define SERVER_GROUP_INIT                                                                          \
    {                                                                                              \
        .mount = -1, .procs = -1                                                                   \
    }

/* One that an earlier server has left behind is used again, with the new limit. */
int server_group_make(struct server_group *group, const char *instance, const char *what,
                      uint64_t memory_bytes, struct error *err);
/* The calling process enters, before it gives up root. Does nothing without a group. */
int server_group_enter(const struct server_group *group);
/* Removes the group once its processes have ended; a group in use stays after a second. */
void server_group_remove(struct server_group *group);
