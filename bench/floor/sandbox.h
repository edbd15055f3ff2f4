/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One sandbox of the floor program: every step that the product takes, in one process, with
 * nothing in between (no HTTP, no database, no second process).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "floor/cgroup.h"
#include "floor/host.h"

/* Where a create spends its time; `floor` prints the medians. */
enum sandbox_step {
    STEP_SUBVOLUME,
    STEP_CGROUPS,
    STEP_CLONE,
    STEP_IDMAP,
    STEP_OVERLAY,
    STEP_CHILD, /* from the fds being sent to the init's exec */
    STEP_COUNT
};

extern const char *const sandbox_step_names[STEP_COUNT];

struct sandbox {
    unsigned number;
    uid_t base; /* root inside is this one outside */
    pid_t pid;
    int pidfd;
    int control; /* our end of the socketpair with the child */
    int listen_fd;
    int init; /* connection to the init */
    int volume_fd;
    struct cgroup_place place;
    bool has_subvolume, has_place;
    int64_t step[STEP_COUNT]; /* ns */
};

/* On failure everything is rolled back. */
int sandbox_create(struct host *host, struct sandbox *ret_sandbox, struct error *err);

/* How an exec in the floor is done: barely (fork, exec, wait, reply), or as the product has to do
 * it, joining the limits and in a cgroup of its own. */
enum exec_kind { EXEC_BARE = 'b', EXEC_OWN_CGROUP = 'c' };

/* argv: strings with their NULs, one after the other. Fails when the command does. */
int sandbox_exec(struct sandbox *sandbox, enum exec_kind kind, const char *argv, size_t argv_len,
                 const char *want_output, struct error *err);

int sandbox_remove(struct host *host, struct sandbox *sandbox, struct error *err);

int64_t now_ns(void);
