/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Limits of one command on memory and processes (struct command_limits): a group of its own.
 *
 * The kernel holds such a limit, whoever else is dead; what is done here is to make the group, to
 * notice when it was hit, so that the rest of the tree can be ended, and to take it down again.
 *
 *   v1   groups `e<n>` of the same number as the command's cgroup, in two folders that came with
 *        AGENT_LIMITS. The command joins them besides the sandbox's own
 *   v2   files of the command's cgroup itself, once the warden has handed the controllers down
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/tree.h"
#include "agent/watch.h"
#include "base/error.h"
#include "wire/messages.h"

struct connection;
struct exec_birth;
struct limit_group;

/* What was handed over (v1), and how often the sandbox as a whole has run out of memory since. */
struct limit_folders {
    int fds[LIMIT_FDS]; /* memory, pids; -1: not handed over */
    int oom_fd;         /* an eventfd; -1: it cannot be told */
    uint64_t ooms;
};

void limit_folders_init(struct limit_folders *folders);
void limit_folders_release(struct limit_folders *folders);

/* Takes them from a connection that was told to bring them (AGENT_LIMITS), and answers. */
void limit_folders_receive(struct agent *agent, struct connection *connection);

/* Whether any of these limits takes a group. */
bool limits_need_group(const struct command_limits *limits);

/*
 * The group of a command whose tree was made, before it is born. UNAVAILABLE when nothing was
 * handed over for it, NOT_IMPLEMENTED where commands have no cgroups at all.
 */
int limit_group_make(struct agent *agent, const struct command_limits *limits,
                     const struct tree *tree, struct limit_group **ret_group, struct error *err);

/* Has the command be born into it. */
void limit_group_join(const struct limit_group *group, struct exec_birth *birth);
/* … which it was. */
void limit_group_born(struct limit_group *group);

/* Calls reached(agent, owner) when a limit may have been hit. Where the kernel does not tell,
 * *ret_look says that limit_group_hit() has to be asked now and then. */
typedef void limit_reached(struct agent *agent, void *owner);
void limit_group_watch(struct agent *agent, struct limit_group *group, limit_reached *reached,
                       void *owner, bool *ret_look);

/* PROCESS_MEMORY_LIMIT or PROCESS_PROCESS_LIMIT; PROCESS_RUNNING: neither was hit so far. What the
 * sandbox's own limits did does not count. */
enum process_state limit_group_hit(struct agent *agent, struct limit_group *group);

/* Whether the kernel has killed something in it for want of memory, be it the sandbox's. */
bool limit_group_oom_killed(struct agent *agent, struct limit_group *group);

/* Removes it, and lets go of its descriptors; false when somebody is still in it. NULL is fine. */
bool limit_group_remove(struct agent *agent, struct limit_group *group);
/* At the end of a turn, as for all that is watched. Removes nothing. */
void limit_group_free(struct agent *agent, struct limit_group *group);
