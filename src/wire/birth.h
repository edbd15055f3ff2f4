/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an agent finds when it starts: the contract between the warden, which makes the sandbox
 * and execs the agent as its pid 1, and the agent.
 *
 *     argv: cella-agent JOIN_COUNT [STATE_DIR [RULES]]
 *
 *   STATE_DIR           where the agent keeps what has to outlive a worker (agent/state_dir.h);
 *                       AGENT_STATE_DIR, or on a read-only root AGENT_STATE_DIR_SCRATCH
 *   RULES               letters for what every command of this sandbox goes without, below
 *
 *   fd AGENT_FD_LISTEN  a listening unix stream socket, bound outside the sandbox's mounts
 *   fd AGENT_FD_CGROUP  the cgroup v2 directory that the sandbox's root owns; every command gets a
 *                       child of its own below it (`e<n>`: mkdir, cgroup.kill, rmdir)
 *   fd AGENT_FD_JOIN …  JOIN_COUNT open files (0: none). A new command writes "0" to each, in
 *                       order, which brings its one thread under the sandbox's limits
 *
 * A command is born in its own cgroup (clone3 with CLONE_INTO_CGROUP). Writing "0" to cgroup.procs
 * there would do as well, but waits for an RCU grace period, 10 ms and more, when nobody on the
 * machine has done so lately. The system call filter lets clone3 through only when its second
 * argument is AGENT_CLONE_ARGS_SIZE (a struct clone_args with zeros behind it); to everybody else
 * it does not exist, so that a libc falls back to clone.
 *
 * The agent is inside the memory limit, so that what it keeps (logs, file pages) is charged to the
 * sandbox; commands carry a higher oom_score_adj, so that the agent goes last. With v1 it stays
 * outside the cpu and pids limits; with v2 one group carries all limits, and a short cpu period
 * keeps a busy sandbox answering.
 *
 * AGENT_RULE_NO_SUBPROCESS needs no_new_privs, which the agent is born with then: a filter of
 * their own keeps commands from making processes. With AGENT_RULE_NO_CAPABILITIES the bounding set
 * is empty; the agent has the few capabilities that its work takes as inheritable ones, and every
 * command gives them up.
 *
 * Without cgroups (unit tests, containers made by others) JOIN_COUNT is "none": then only the
 * listening socket is there, and a command's tree is its process group.
 */

enum {
    AGENT_FD_LISTEN = 3,
    AGENT_FD_CGROUP = 4,
    AGENT_FD_JOIN = 5,
    AGENT_JOIN_MAX = 4,
    AGENT_CLONE_ARGS_SIZE = 128,
    AGENT_RULE_NO_SUBPROCESS = 's',
    AGENT_RULE_NO_CAPABILITIES = 'c',
    AGENT_SOCKETS_SHARE = 4, /* v1: a limit's part for buffers of connections, counted apart */
};

#define AGENT_STATE_DIR         "/.cella"
#define AGENT_STATE_DIR_SCRATCH "/tmp/.cella"
