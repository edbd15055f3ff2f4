/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which ports a process listens on: its own sockets and those of its whole tree.
 *
 * The kernel knows of each socket in which cgroup it was made, and a process's tree has a cgroup of
 * its own: so one question to it (sock_diag) answers for the whole tree, whoever its members have
 * become. Without cgroups the sockets that the members of the leader's session hold are looked up
 * in /proc.
 */

#include <stdint.h>

#include "base/error.h"

struct agent;
struct connection;
struct process;

/* Answers with AGENT_PORT … and WIRE_OK: TCP sockets that listen and UDP ones that are bound, IPv4
 * and IPv6, PROCESS_PORTS_MAX at most. */
int ports_answer(struct agent *agent, struct process *process, struct connection *connection,
                 uint32_t id, struct error *err);
