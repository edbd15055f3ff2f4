/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sandboxes that stand still with all that they have in memory. The kernel freezes them
 * (cgroup_freeze.c), which takes a moment that the loop does not wait for: a file tells when the
 * last process has stopped. Then, in a child and for as long as it stands still, the kernel is
 * asked to take back what it can of their memory.
 *
 * The record says so before the first process is frozen, and says otherwise before the first goes
 * on. So a warden that comes after one that was killed anywhere in between knows what was meant,
 * and whoever asked asks again.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/fault.h"
#include "warden/job.h"
#include "warden/warden.h"

enum { STILL_TIMEOUT_MS = 10 * 1000, RECLAIMS_AT_ONCE = 2 };

/* ---- memory ---- */

struct reclaim {
    struct job job;
    char id[PLAN_ID_MAX + 1];
};

static bool is_orphaned(void *arg)
{
    return job_orphaned(arg);
}

/* Nothing has to be undone, so it goes with its warden: the next one is not kept waiting. */
static int take_back(struct job *job, struct error *err)
{
    const struct reclaim *reclaim = container_of(job, struct reclaim, job);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cgroup_reclaim(&job->warden->cgroups, reclaim->id, is_orphaned, job);
    return 0;
}

static void reclaim_next(struct warden *warden);

static void taken_back(struct job *job, const struct error *failure)
{
    struct reclaim *reclaim = container_of(job, struct reclaim, job);
    struct warden *warden = job->warden;
    struct sandbox *sandbox = sandbox_find(warden, reclaim->id);
    if (sandbox != NULL && sandbox->reclaim == reclaim)
        sandbox->reclaim = NULL;
    free(reclaim);
    warden->reclaims--;
    reclaim_next(warden);
}

static void reclaim_start(struct sandbox *sandbox)
{
    struct error err;
    struct reclaim *reclaim = calloc(1, sizeof(*reclaim));
    sandbox->to_reclaim = false;
    if (reclaim == NULL)
        return; /* it keeps what it has */
    snprintf(reclaim->id, sizeof(reclaim->id), "%s", sandbox->id);
    if (job_start(&reclaim->job, sandbox->warden, "cella-reclaim", take_back, taken_back, &err) <
        0) {
        log_warn("sandbox %s: taking its memory back: %s", sandbox->id, err.message);
        free(reclaim);
        return;
    }
    sandbox->reclaim = reclaim;
    sandbox->warden->reclaims++;
}

static void reclaim_next(struct warden *warden)
{
    for (struct sandbox *s = warden->sandboxes;
         s != NULL && warden->reclaims < RECLAIMS_AT_ONCE && !warden->stopping; s = s->by_id.next)
        if (s->to_reclaim && s->reclaim == NULL)
            reclaim_start(s);
}

static void reclaim_stop(struct sandbox *sandbox)
{
    sandbox->to_reclaim = false;
    if (sandbox->reclaim != NULL)
        job_kill(&sandbox->reclaim->job);
}

/* ---- standing still ---- */

static void settle(struct sandbox *sandbox, const struct error *failure)
{
    source_close(&sandbox->freezing);
    sandbox_set_deadline(sandbox, 0);
    answer_waiters(sandbox->warden, &sandbox->pausers, failure);
    if (failure != NULL)
        return;
    sandbox->to_reclaim = true;
    reclaim_next(sandbox->warden);
}

static void look(struct source *source, uint32_t events)
{
    struct sandbox *sandbox = container_of(source, struct sandbox, freezing);
    if (cgroup_is_frozen(source->fd))
        settle(sandbox, NULL);
}

/* -1: it runs on, as far as this has come. */
static int freeze(struct sandbox *sandbox, struct error *err)
{
    struct warden *warden = sandbox->warden;
    int events;
    if (cgroup_freeze_begin(&warden->cgroups, sandbox->id, &events, err) < 0 ||
        source_watch(warden->epoll_fd, &sandbox->freezing, events, EPOLLPRI, look, err) < 0)
        return -1;
    sandbox_set_deadline(sandbox, warden_now_ms() + STILL_TIMEOUT_MS);
    look(&sandbox->freezing, 0); /* what changed before it was watched is not told */
    return 0;
}

static int go_on(struct sandbox *sandbox, struct error *err)
{
    sandbox->paused = false;
    if (sandbox_save_running(sandbox, err) < 0) {
        sandbox->paused = true;
        return -1;
    }
    reclaim_stop(sandbox);
    cgroup_thaw(&sandbox->warden->cgroups, sandbox->id);
    volume_keeper_wake(sandbox->warden);
    return 0;
}

void pause_timer(struct sandbox *sandbox)
{
    struct error err, ignored;
    if (sandbox->freezing.fd < 0)
        return;
    cgroup_not_still(sandbox->id, STILL_TIMEOUT_MS, &err);
    if (go_on(sandbox, &ignored) < 0) {
        log_error("sandbox %s: %s", sandbox->id, ignored.message);
        cgroup_thaw(&sandbox->warden->cgroups, sandbox->id);
    }
    settle(sandbox, &err);
}

void pause_adopt(struct sandbox *sandbox)
{
    struct error err;
    sandbox->paused = true;
    if (freeze(sandbox, &err) < 0)
        log_error("sandbox %s: %s", sandbox->id, err.message);
}

void pause_end(struct sandbox *sandbox)
{
    struct error err;
    if (!sandbox->paused)
        return;
    sandbox->paused = false;
    reclaim_stop(sandbox);
    cgroup_thaw(&sandbox->warden->cgroups, sandbox->id);
    if (sandbox->freezing.fd < 0)
        return;
    error_set(&err, ERROR_NOT_RUNNING, "the sandbox has ended");
    settle(sandbox, &err);
}

/* ---- requests ---- */

/* NULL: none that could be asked. */
static struct sandbox *find(struct connection *connection, const char *id, struct error *err)
{
    struct warden *warden = connection->warden;
    struct sandbox *sandbox = sandbox_find(warden, id);
    if (sandbox == NULL || sandbox->state != SANDBOX_RUNNING)
        error_set(err, ERROR_NOT_RUNNING, "the sandbox does not run");
    else if (copy_stands_on(warden, id)) /* which has it stand still and go on, in its own time */
        error_set(err, ERROR_CONFLICT, "sandbox %s is being copied", id);
    else
        return sandbox;
    return NULL;
}

/* For tests that kill the warden between what it writes down and what it does. */
static void die_if_asked(const struct warden *warden, const char *where)
{
    if (fault_check(warden->options.fail_at, where, NULL) < 0)
        raise(SIGKILL);
}

int pause_request(struct connection *connection, uint32_t id, const struct warden_ref *request,
                  struct error *err)
{
    struct sandbox *sandbox = find(connection, request->id, err);
    if (sandbox == NULL)
        return -1;
    if (sandbox->freezing.fd >= 0)
        return waiter_add(&sandbox->pausers, connection, id, err);
    const bool before = sandbox->paused;
    sandbox->paused = true;
    if ((!before && sandbox_save_running(sandbox, err) < 0) ||
        waiter_add(&sandbox->pausers, connection, id, err) < 0) {
        sandbox->paused = before;
        return -1;
    }
    die_if_asked(connection->warden, "pause-record");
    if (freeze(sandbox, err) == 0)
        return 0;
    struct error ignored, failure = *err;
    go_on(sandbox, &ignored);
    settle(sandbox, &failure);
    return 0;
}

int resume_request(struct connection *connection, uint32_t id, const struct warden_ref *request,
                   struct error *err)
{
    struct sandbox *sandbox = find(connection, request->id, err);
    struct error given_up;
    if (sandbox == NULL)
        return -1;
    if (sandbox->paused && go_on(sandbox, err) < 0)
        return -1;
    if (sandbox->freezing.fd >= 0) {
        error_set(&given_up, ERROR_CANCELLED, "somebody had the sandbox go on");
        settle(sandbox, &given_up);
    }
    wire_encode(&connection->out, &wire_ok_schema, id, NULL);
    connection_flush(connection);
    return 0;
}
