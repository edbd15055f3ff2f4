/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Slow work for the warden, done by a child that it forks: the loop goes on meanwhile.
 *
 * The child has a copy of everything and keeps only the descriptors of the storage and the cgroups.
 * It outlives a warden that is killed, so that it can undo what must not stay (a sandbox that
 * stands still), but nothing of what it makes counts then: whoever continues looks at
 * job_orphaned() before each step that lasts. Work that would be visible at once has itself killed
 * with its warden instead (resize.c).
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "warden/source.h"

struct warden;
struct job;

/* In the child. -1: the error goes to `done`. */
typedef int (*job_run)(struct job *job, struct error *err);
/* In the warden, when the child is gone; failure NULL: it did its work. May free the job. */
typedef void (*job_done)(struct job *job, const struct error *failure);

struct job {
    struct warden *warden;
    pid_t pid;    /* 0: not started, or over */
    pid_t parent; /* the warden's */
    job_done done;
    struct source report;
    char received[sizeof(struct error)];
    size_t received_len;
};

/* Starts it; name is the child's, for people. -1: nothing was started, and done is not called. */
int job_start(struct job *job, struct warden *warden, const char *name, job_run run, job_done done,
              struct error *err);

/* Ends the child, at once; done is called as for any other end. Fine when it does not run. */
void job_kill(struct job *job);

/* In the child: whether its warden is gone. */
bool job_orphaned(const struct job *job);
