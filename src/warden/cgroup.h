/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Control groups of sandboxes, on a machine with v2 or with v1 controllers.
 *
 * In the cgroup2 tree (which gives kill, freeze and birth in a group even where all controllers
 * are v1's) a sandbox has two groups:
 *
 *   cella-<instance>/<id>        the agent. Root of the sandbox's cgroup namespace
 *   cella-<instance>/<id>/work   every command. It belongs to the sandbox's root: the agent makes
 *                                a child group per command below it
 *
 * Memory is limited for both together: what the agent keeps is the sandbox's. Where the limits
 * are set differs and is a backend's business:
 *
 *   v2   all of them at <id>
 *   v1   memory:/cella-<instance>/<id> holds agent and commands (as does blkio:, which only those
 *        have that limit disk I/O), cpu: and pids: the commands only, so that a busy sandbox can
 *        still be talked to
 *
 * Nobody moves a process by writing to cgroup.procs: that takes a lock which every fork on the
 * machine reads, and when it was not taken lately it waits for an RCU grace period, 10 ms and more.
 * A process is born in its group of the cgroup2 tree (CLONE_INTO_CGROUP), and a single thread that
 * moves itself by writing to v1's `tasks` needs no such lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/limits.h"
#include "warden/iodev.h"
#include "wire/messages.h"

enum cgroup_tree {
    CGROUP_UNIFIED,
    CGROUP_MEMORY,
    CGROUP_CPU,
    CGROUP_PIDS,
    CGROUP_BLKIO,
    CGROUP_TREES
};

struct cgroup_backend;

/* The machine's trees, opened at this instance's own folder in each. */
struct cgroups {
    const struct cgroup_backend *backend;
    char parent[sizeof("cella-") + INSTANCE_ID_LEN];
    int mounts[CGROUP_TREES];       /* where each tree is mounted; -1: not used by the backend */
    int parents[CGROUP_TREES];      /* cella-<instance> in it */
    int parent_tasks[CGROUP_TREES]; /* v1: the way out of a sandbox's limits */
    struct io_devices devices;      /* whose I/O is limited */
    bool io_controller;             /* v2: there is one */
};

/* Rates of disk I/O, bytes and operations per second. 0: no limit. */
struct io_limits {
    uint64_t read_bytes, write_bytes;
    uint64_t read_ops, write_ops;
};

struct cgroup_limits {
    uint64_t memory_bytes;
    uint64_t cpu_millis;
    uint64_t pids_max;
    struct io_limits io;
    uid_t owner; /* the sandbox's root, outside */
};

/*
 * What a starting sandbox needs of its groups. It is born in `group`, writes "0" to each of enter
 * (open `tasks` files, which keep the warden's right to move a process), makes its cgroup namespace
 * there, and then to each of leave. Commands join the limits through the last `join_count` of
 * enter.
 */
enum { CGROUP_ENTER_MAX = 4, CGROUP_LEAVE_MAX = 2 };

struct cgroup_set {
    int group; /* the sandbox's own in the cgroup2 tree */
    int work;  /* the work group as a mount of its own, so that ".." does not leave it */
    int enter[CGROUP_ENTER_MAX];
    size_t enter_count;
    size_t join_count;
    int leave[CGROUP_LEAVE_MAX]; /* the instance's own: borrowed */
    size_t leave_count;
};

#define CGROUP_SET_INIT                                                                            \
    {                                                                                              \
        .group = -1, .work = -1                                                                    \
    }

struct cgroup_backend {
    const char *name;
    const enum cgroup_tree *trees; /* the ones that hold groups of ours, CGROUP_TREES at the end */
    int (*prepare)(struct cgroups *cgroups, struct error *err);
    int (*limit)(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                 struct cgroup_set *set, struct error *err);
    int (*resize)(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                  struct error *err);
    /* See cgroup_delegate(). */
    int (*delegate)(const struct cgroups *cgroups, const char *id, uid_t owner, struct error *err);
    bool delegates_folders; /* … which the agent has to be handed */
    enum cgroup_tree memory_tree;
    const char *oom_file;      /* has a line "oom_kill N" */
    const char *memory_file;   /* bytes charged */
    const char *reclaim_file;  /* takes a number of bytes to take back … */
    bool reclaims_all;         /* … or, whatever is written, gives back all that can be */
    const char *inactive_line; /* of memory.stat: file pages that nobody used lately */
    enum cgroup_tree pids_tree;
    unsigned pids_of_agent; /* how many of pids.current are not commands */
};

extern const struct cgroup_backend cgroup_v1, cgroup_v2;

/* Finds the trees in this namespace's mount table (mounting a cgroup2 one where there is none, so
 * the caller should have a mount namespace of its own). With `make` the instance's parents are
 * made; without, what does not exist stays -1. */
int cgroups_open(struct cgroups *cgroups, const char *instance, bool make, struct error *err);
void cgroups_close(struct cgroups *cgroups);
void cgroups_remove_parents(const struct cgroups *cgroups);

int cgroup_make(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                struct cgroup_set *ret_set, struct error *err);
void cgroup_set_release(struct cgroup_set *set);

/*
 * New limits for a sandbox that runs: all of them, or none. RESOURCE_IN_USE when it holds more
 * memory than it would have and the kernel cannot get it back; trying takes time.
 */
int cgroup_resize(const struct cgroups *cgroups, const char *id, const struct cgroup_limits *limits,
                  struct error *err);

/* ---- rates (cgroup_io.c) ---- */

bool io_limits_any(const struct io_limits *io);
/* Whether rates can be limited on this machine. Where not, setting them does nothing. */
bool cgroup_has_io(const struct cgroups *cgroups);
/* Sets the rates of a sandbox, making the group where it needs one of its own; with `runs`, what
 * runs of it is moved there. */
int cgroup_limit_io(const struct cgroups *cgroups, const char *id, const struct io_limits *io,
                    bool runs, struct error *err);

/*
 * Lets the sandbox's root, which is `owner` outside, limit memory and processes of single commands,
 * below the sandbox's own limits (cgroup_delegate.c). Fine when it may already. On v2 this moves
 * the agent, which takes time.
 */
int cgroup_delegate(const struct cgroups *cgroups, const char *id, uid_t owner, struct error *err);
/* v1: what of a controller was delegated, as a mount of its own, so that ".." does not leave it. */
int cgroup_open_delegated(const struct cgroups *cgroups, const char *id, enum cgroup_tree tree,
                          int *ret_fd, struct error *err);

/*
 * Stops everything in it, the agent included, where it is (cgroup_freeze.c), and returns when all
 * of it stands still: CONFLICT when the group is gone, TIMEOUT, with everything running again, when
 * something did not stop. Thawing what is not frozen, or not there, is fine.
 */
int cgroup_freeze(const struct cgroups *cgroups, const char *id, int timeout_ms, struct error *err);
void cgroup_thaw(const struct cgroups *cgroups, const char *id);
/*
 * The same without waiting: the descriptor gives POLLPRI whenever cgroup_is_frozen(), which reads
 * it, may have another answer. cgroup_not_still() is the error for those that wait in vain.
 */
int cgroup_freeze_begin(const struct cgroups *cgroups, const char *id, int *ret_events,
                        struct error *err);
bool cgroup_is_frozen(int events);
int cgroup_not_still(const char *id, int timeout_ms, struct error *err);

/*
 * Has the kernel take back what it can of a sandbox's memory: file pages, and where there is swap
 * the rest (cgroup_reclaim.c). Takes as long as it takes; `stop` is asked in between.
 */
void cgroup_reclaim(const struct cgroups *cgroups, const char *id, bool (*stop)(void *arg),
                    void *arg);

/* SIGKILL to everything in it, the agent included. A group that is not there is fine. */
void cgroup_kill(const struct cgroups *cgroups, const char *id);

/* A signal to every process in the work group and below, which the agent is not in. */
void cgroup_signal_work(const struct cgroups *cgroups, const char *id, int signal);

/* Whether a command is still in the work group. */
bool cgroup_work_busy(const struct cgroups *cgroups, const char *id);

/* How many of its processes the memory limit has ended. */
uint64_t cgroup_oom_kills(const struct cgroups *cgroups, const char *id);

/*
 * What a sandbox uses, by its groups. The cgroup2 tree counts cpu time whether it has the
 * controller or not, so that is where it is read on v1 too (whose cpuacct may be mounted nowhere).
 * Numbers that cannot be read are not in `known` (wire/messages.h).
 */
void cgroup_sample(const struct cgroups *cgroups, const char *id, struct warden_sample *sample);

/* 1 when all its groups are gone, 0 when a process is still leaving, -1 on errors. */
int cgroup_remove(const struct cgroups *cgroups, const char *id, struct error *err);

/* Calls fn for each group of the instance, with the name of its tree (several times for an id). */
typedef int (*cgroup_fn)(const char *tree, int parent, const char *id, void *arg);
int cgroups_each(const struct cgroups *cgroups, cgroup_fn fn, void *arg, struct error *err);

/* Calls fn for each process in the group `name` below `parent`, and in the groups below it. */
typedef void (*cgroup_pid_fn)(pid_t pid, void *arg);
void cgroup_each_pid(int parent, const char *name, cgroup_pid_fn fn, void *arg);

/* ---- programs of the server's, not in a sandbox (cgroup_helper.c) ---- */

/* See struct warden_helper. The group is made when it is not there. */
int cgroup_open_helper(const struct cgroups *cgroups, uint64_t group, uint64_t part, int *ret_fd,
                       struct error *err);
/* Whether a group has the name of one of these. */
bool cgroup_is_helper(const char *name);
/* Ends what is in them, and removes them. */
void cgroup_remove_helpers(const struct cgroups *cgroups);

/* For the backends. */
struct cgroup_knob {
    enum cgroup_tree tree;
    const char *file; /* below the sandbox's group */
    char value[48];
    bool optional; /* not in every kernel */
};
/* Writes them in order; when one fails, those before it get their old values back, unless the group
 * is a fresh one, which goes then. */
int cgroup_write_knobs(const struct cgroups *cgroups, const char *id, bool fresh,
                       const struct cgroup_knob *knobs, size_t count, struct error *err);
uint64_t cgroup_read_number(int dirfd, const char *id, const char *file); /* 0: no number */
int cgroup_delegate_v1(const struct cgroups *cgroups, const char *id, uid_t owner,
                       struct error *err);
int cgroup_delegate_v2(const struct cgroups *cgroups, const char *id, uid_t owner,
                       struct error *err);
int cgroup_memory_in_use(struct error *err, uint64_t used, uint64_t wanted);
int cgroup_open_tasks(int dirfd, const char *path, int *ret_fd, struct error *err);
int cgroup_write_number(int dirfd, const char *path, uint64_t value, struct error *err);
void cgroup_format_cpu_max(uint64_t cpu_millis, char *out, size_t size); /* v2: "quota period" */

/* A share of cpu as a quota per period. The period is short, so that a sandbox that has used up its
 * quota answers again soon, but long enough for the kernel's smallest quota. */
struct cpu_quota {
    uint64_t quota_us;
    uint64_t period_us;
};
struct cpu_quota cgroup_cpu_quota(uint64_t cpu_millis);
/* The value of a line "<key> N" in a flat keyed file; 0 when there is none. */
uint64_t cgroup_flat_value(const char *text, const char *key);
