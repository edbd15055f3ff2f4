/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One sandbox as the warden knows it, from the start that makes it to the end of its last trace.
 *
 *   MAKING → RUNNING → ENDING → (gone)
 *      └────────────────┘
 *
 * There is one way out, sandbox_end(), for a stop, a removal, a start that failed half-way, a pid 1
 * that died and a record that an earlier warden left: it takes down whatever exists, in an order
 * that a crash in the middle can be picked up from, and then answers whoever waits.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uthash.h>

#include "base/error.h"
#include "warden/cgroup.h"
#include "warden/net.h"
#include "warden/plan.h"
#include "warden/source.h"
#include "wire/messages.h"

struct warden;
struct connection;
struct reclaim;

enum sandbox_state { SANDBOX_MAKING, SANDBOX_RUNNING, SANDBOX_ENDING };

/* Somebody to answer: connections are named by number, since they may be gone by then. */
struct waiter {
    struct waiter *next;
    uint64_t connection;
    uint32_t request;
    bool joined; /* it asked for a start that was under way already */
};

struct sandbox {
    UT_hash_handle by_id;
    struct sandbox *next_pressing; /* see sandbox_set_deadline() */
    struct warden *warden;
    char id[PLAN_ID_MAX + 1];
    enum sandbox_state state;
    pid_t pid; /* 0: none (any more) */
    uint64_t start_time;
    int slot; /* -1: none */
    bool fresh;
    bool spare;  /* made ahead of time, and not claimed yet (claim.c) */
    bool ours;   /* this warden is its parent */
    bool killed; /* SIGKILL was sent */
    bool remove; /* its files go too */
    bool oom;
    bool delegating; /* limits of its commands are being handed over */
    bool announce;   /* nobody asked for its end: tell everybody */
    bool paused;     /* it is to stand still, and its record says so (pause.c) */
    bool to_reclaim; /* its memory is to be taken back, when its turn comes */
    struct sandbox_net net;
    int mount_namespace;                     /* ENDING: held until it is dead; -1: none */
    struct source pidfd;                     /* readable when pid 1 has died */
    struct source channel;                   /* MAKING: from the child */
    struct source freezing;                  /* RUNNING: open until all of it stands still */
    struct waiter *pausers;                  /* who waits for that */
    struct reclaim *reclaim;                 /* the child that takes its memory back; NULL: none */
    uint64_t deadline_ms;                    /* 0: none; set by sandbox_set_deadline() */
    uint64_t kill_at_ms;                     /* ENDING: the end of the grace */
    bool disk_measured;                      /* disk_bytes is there */
    uint64_t disk_bytes;                     /* as last measured (meter.h) */
    uint64_t disk_measure_at_ms;             /* when to measure again; 0: not asked for yet */
    struct waiter *starters;                 /* who asked for it, the first one last */
    struct waiter *waiters;                  /* who asked for its end */
    struct error failure;                    /* why it could not be made; code 0: it could */
    char received[sizeof(struct error) + 1]; /* from the child */
    size_t received_len;
};

/* ---- start.c ---- */

/* Begins to make a sandbox, or joins those who wait for one that is being made; the answer goes out
 * when its agent runs, or when everything of it is gone again. -1: nothing was begun, the caller
 * answers. */
int sandbox_start(struct warden *warden, const struct plan *plan, struct waiter from,
                  struct error *err);

/* The limits that its cgroups have to enforce; `base` is the sandbox's root, outside. */
struct cgroup_limits sandbox_limits(const struct plan *plan, uid_t base);

/* Names of the steps, for --list-steps; NULL at the end. */
extern const char *const sandbox_step_names[];

/* Its record, while it runs: after a change of what that says. */
int sandbox_save_running(const struct sandbox *sandbox, struct error *err);

/* ---- stop.c ---- */

void sandbox_end(struct sandbox *sandbox, uint64_t grace_ms);

/* pid 1 died, or its deadline came: what happens then depends on the state. */
void sandbox_died(struct sandbox *sandbox);
void sandbox_timer(struct sandbox *sandbox);

/* Fails a start: from now on the sandbox is ending, and `err` is the answer. */
void sandbox_fail(struct sandbox *sandbox, const struct error *err);

/* ---- socket.c ---- */

/* A TCP socket (AF_INET or AF_INET6) in the sandbox's network namespace, for good. NOT_RUNNING. */
int sandbox_socket(const struct sandbox *sandbox, int family, int *ret_fd, struct error *err);

/* ---- claim.c ---- */

/* A spare sandbox becomes what the plan says; see WARDEN_CLAIM. */
int sandbox_claim(struct warden *warden, const struct plan *plan, struct error *err);

/* ---- pause.c ---- */

/* See WARDEN_PAUSE and WARDEN_RESUME. */
int pause_request(struct connection *connection, uint32_t id, const struct warden_ref *request,
                  struct error *err);
int resume_request(struct connection *connection, uint32_t id, const struct warden_ref *request,
                   struct error *err);
/* Of one whose record says that it was paused: so it is, whatever was under way. */
void pause_adopt(struct sandbox *sandbox);
/* It did not come to stand still in time. */
void pause_timer(struct sandbox *sandbox);
/* It ends: nobody waits for its pause any more, and it can act on signals. */
void pause_end(struct sandbox *sandbox);

/* ---- adopt.c ---- */

/* Takes over or clears away what the records and the kernel hold of earlier wardens. */
int sandbox_adopt_all(struct warden *warden, struct error *err);

/* Field 22 of /proc/PID/stat; 0 when there is no such process. */
uint64_t process_start_time(pid_t pid);
