/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pid 1 of a sandbox: reaps, runs commands, keeps their output, hands file work to workers. It
 * speaks the AGENT_* and FILE_* messages of wire/messages.h and knows no public API.
 *
 * One thread, one epoll loop. Nothing in the loop blocks: what has to (starting a command under
 * a throttled cgroup, file work) happens in children.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "agent/confine.h"
#include "agent/files.h"
#include "agent/history_watch.h"
#include "agent/launch.h"
#include "agent/limits.h"
#include "agent/watch.h"
#include "base/error.h"
#include "base/limits.h"

struct connection;
struct process;
struct terminal;

struct agent_config {
    int listen_fd;
    int cgroup_fd;         /* -1: no cgroups; a command's tree is its process group */
    int join_fd;           /* the first of join_count open `tasks` files */
    unsigned join_count;   /* at most AGENT_JOIN_MAX */
    bool ends_on_sigterm;  /* not as pid 1, which only the warden ends */
    const char *state_dir; /* agent/state_dir.h */
    struct confinement confinement;
};

struct agent {
    struct agent_config config;
    int epoll_fd;
    uint64_t started_ms;
    struct rlimit nofile; /* as found: what commands get back */

    struct watch listener;
    struct watch signals;
    bool ended;

    struct connection *connections;
    unsigned connection_count;
    uint64_t accept_at; /* monotonic ms; 0: now. Out of fds, new connections have to wait */

    struct process *processes; /* oldest first */
    struct process **processes_tail;
    bool processes_changed; /* something came nearer to being dropped */
    uint64_t last_sequence;
    uint64_t changes;   /* counts up with everything that processes write */
    uint64_t name_seed; /* of the names that are made up; 0: not yet */
    uint64_t oom_kills; /* of the sandbox, as far as accounted for */

    struct terminal *terminals; /* oldest first */
    unsigned attached_count;    /* connections to them */
    bool terminals_changed;     /* something came nearer to being dropped */

    struct launch_pad launch;
    struct limit_folders limit_folders;

    struct file_workers file_workers;
    struct history_watch history;
};

/* Serves until the end (SIGTERM, if so configured). Takes the fds of the config over. */
int agent_run(const struct agent_config *config, struct error *err);

uint64_t agent_monotonic_ms(void);
uint64_t agent_unix_ms(void);
