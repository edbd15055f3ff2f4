/* SPDX-License-Identifier: Apache-2.0 */

/*
 * New limits for a sandbox. In a child, because the kernel takes its time to get memory back that a
 * smaller limit does not allow, and because plain storage has to be measured by walking it.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/fault.h"
#include "warden/job.h"
#include "warden/warden.h"

enum { RESIZES_MAX = 256 };

struct resize {
    struct resize *next;
    struct job job;
    char id[PLAN_ID_MAX + 1];
    bool runs;
    bool only_looks; /* whether the files would fit */
    uint64_t disk_bytes;
    struct cgroup_limits limits;
    uint64_t memory_bandwidth;
    pid_t pid;
    struct waiter *waiters;
};

/* More processes than the new limit would go on, and none could be made. */
static int check_tasks(const struct warden *warden, const struct resize *resize, struct error *err)
{
    struct warden_sample sample = {.id = resize->id};
    cgroup_sample(&warden->cgroups, resize->id, &sample);
    if (sample.tasks <= resize->limits.pids_max)
        return 0;
    return error_set(err, ERROR_RESOURCE_IN_USE,
                     "pids: %llu processes and threads are more than the new limit of %llu",
                     (unsigned long long)sample.tasks, (unsigned long long)resize->limits.pids_max);
}

/* Limits that are set late would undo those that the next warden has set by then. One that is
 * killed half way leaves limits that cellad has marked as not settled, and sets again. */
static int end_with_warden(const struct job *job, struct error *err)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (job_orphaned(job))
        return error_set(err, ERROR_CANCELLED, "the warden is gone");
    if (fault_check(job->warden->options.fail_at, "resize-hang", NULL) < 0)
        pause(); /* for the test that kills the warden here */
    return 0;
}

/* What can be refused comes before what lasts. Setting a quota cannot, short of a broken disk;
 * whoever asked then asks for the old limits again. */
static int run(struct job *job, struct error *err)
{
    const struct resize *resize = container_of(job, struct resize, job);
    const struct warden *warden = job->warden;
    if (end_with_warden(job, err) < 0 ||
        storage_fits(&warden->storage, resize->id, resize->disk_bytes, err) < 0)
        return -1;
    if (resize->runs && (check_tasks(warden, resize, err) < 0 ||
                         cgroup_resize(&warden->cgroups, resize->id, &resize->limits, err) < 0 ||
                         resctrl_limit(&warden->resctrl, resize->id, resize->memory_bandwidth,
                                       resize->pid, err) < 0))
        return -1;
    return storage_limit(&warden->storage, resize->id, resize->disk_bytes, err);
}

static void done(struct job *job, const struct error *failure)
{
    struct resize *resize = container_of(job, struct resize, job);
    struct resize **at = &job->warden->resizes;
    while (*at != resize)
        at = &(*at)->next;
    *at = resize->next;
    answer_waiters(job->warden, &resize->waiters, failure);
    free(resize);
}

static int check_room(const struct warden *warden, struct error *err)
{
    size_t count = 0;
    for (const struct resize *r = warden->resizes; r != NULL; r = r->next)
        count++;
    if (count >= RESIZES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d sandboxes are being looked at already",
                         RESIZES_MAX);
    return 0;
}

static int check_sandbox(struct warden *warden, const char *id, bool *ret_runs, pid_t *ret_pid,
                         struct error *err)
{
    const struct sandbox *sandbox = sandbox_find(warden, id);
    if (sandbox != NULL && sandbox->state != SANDBOX_RUNNING)
        return error_set(err, ERROR_CONFLICT, "sandbox %s is being started or stopped", id);
    for (const struct resize *r = warden->resizes; r != NULL; r = r->next)
        if (!r->only_looks && strcmp(r->id, id) == 0)
            return error_set(err, ERROR_CONFLICT, "the limits of sandbox %s are being changed", id);
    *ret_runs = sandbox != NULL;
    *ret_pid = sandbox != NULL ? sandbox->pid : 0;
    return check_room(warden, err);
}

static int add_resize(struct connection *connection, uint32_t id, const struct resize *from,
                      job_run work, struct error *err)
{
    struct warden *warden = connection->warden;
    if (warden->stopping)
        return error_set(err, ERROR_UNAVAILABLE, "the server is shutting down");
    struct resize *resize = malloc(sizeof(*resize));
    if (resize == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
    *resize = *from;
    if (waiter_add(&resize->waiters, connection, id, err) < 0 ||
        job_start(&resize->job, warden, "cella-resize", work, done, err) < 0) {
        free(resize->waiters);
        free(resize);
        return -1;
    }
    resize->next = warden->resizes;
    warden->resizes = resize;
    return 0;
}

int resize_request(struct connection *connection, uint32_t id, const struct warden_update *request,
                   struct error *err)
{
    struct resize resize = {
        .disk_bytes = request->disk_bytes,
        .limits = {.memory_bytes = request->memory_bytes,
                   .cpu_millis = request->cpu_millis,
                   .pids_max = request->pids_max,
                   .io = {.read_bytes = request->disk_read_bytes,
                          .write_bytes = request->disk_write_bytes,
                          .read_ops = request->disk_read_ops,
                          .write_ops = request->disk_write_ops}},
        .memory_bandwidth = request->memory_bandwidth,
    };
    snprintf(resize.id, sizeof(resize.id), "%s", request->id);
    if (plan_check_update(request, err) < 0 ||
        check_sandbox(connection->warden, request->id, &resize.runs, &resize.pid, err) < 0)
        return -1;
    return add_resize(connection, id, &resize, run, err);
}

static int look(struct job *job, struct error *err)
{
    const struct resize *resize = container_of(job, struct resize, job);
    return storage_fits(&job->warden->storage, resize->id, resize->disk_bytes, err);
}

int fits_request(struct connection *connection, uint32_t id, const struct warden_fits *request,
                 struct error *err)
{
    struct resize resize = {.disk_bytes = request->disk_bytes, .only_looks = true};
    snprintf(resize.id, sizeof(resize.id), "%s", request->id);
    if (!plan_id_valid(request->id))
        return error_set(err, ERROR_INVALID_NAME, "not a sandbox id");
    if (check_room(connection->warden, err) < 0)
        return -1;
    return add_resize(connection, id, &resize, look, err);
}
