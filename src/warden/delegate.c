/* SPDX-License-Identifier: Apache-2.0 */

/*
 * WARDEN_DELEGATE: what lets an agent limit single commands (cgroup_delegate.c). On v1 that is a
 * folder, made here and sent at once; on v2 processes have to be moved, which waits for the whole
 * machine, so a child does it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "warden/job.h"
#include "warden/warden.h"

struct delegation {
    struct job job;
    char id[PLAN_ID_MAX + 1];
    uid_t owner;
    struct waiter *waiters;
};

static int run(struct job *job, struct error *err)
{
    const struct delegation *delegation = container_of(job, struct delegation, job);
    return cgroup_delegate(&job->warden->cgroups, delegation->id, delegation->owner, err);
}

static void done(struct job *job, const struct error *failure)
{
    struct delegation *delegation = container_of(job, struct delegation, job);
    struct sandbox *sandbox = sandbox_find(job->warden, delegation->id);
    if (sandbox != NULL)
        sandbox->delegating = false;
    answer_waiters(job->warden, &delegation->waiters, failure);
    free(delegation);
}

static int start_job(struct connection *connection, uint32_t id, struct sandbox *sandbox,
                     struct error *err)
{
    struct warden *warden = connection->warden;
    if (sandbox->delegating)
        return error_set(err, ERROR_CONFLICT,
                         "the limits of commands in sandbox %s are being prepared", sandbox->id);
    struct delegation *delegation = calloc(1, sizeof(*delegation));
    if (delegation == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
    snprintf(delegation->id, sizeof(delegation->id), "%s", sandbox->id);
    delegation->owner = ids_base(sandbox->slot);
    if (waiter_add(&delegation->waiters, connection, id, err) < 0 ||
        job_start(&delegation->job, warden, "cella-delegate", run, done, err) < 0) {
        free(delegation->waiters);
        free(delegation);
        return -1;
    }
    sandbox->delegating = true;
    return 0;
}

static int send_folder(struct connection *connection, uint32_t id, const struct sandbox *sandbox,
                       uint64_t controller, struct error *err)
{
    static const enum cgroup_tree trees[] = {
        [DELEGATE_MEMORY] = CGROUP_MEMORY, [DELEGATE_PIDS] = CGROUP_PIDS};
    const struct cgroups *cgroups = &connection->warden->cgroups;
    _cleanup_buf_ struct buf frame = BUF_INIT(FRAME_HEADER_SIZE);
    _cleanup_fd_ int fd = -1;
    if (controller != DELEGATE_MEMORY && controller != DELEGATE_PIDS)
        return error_set(err, ERROR_INVALID_ARGUMENT, "no such controller");
    if (cgroup_delegate(cgroups, sandbox->id, ids_base(sandbox->slot), err) < 0 ||
        cgroup_open_delegated(cgroups, sandbox->id, trees[controller], &fd, err) < 0)
        return -1;
    wire_encode(&frame, &wire_ok_schema, id, NULL);
    return connection_send_fd(connection, &frame, fd, err);
}

int delegate_request(struct connection *connection, uint32_t id,
                     const struct warden_delegate *request, struct error *err)
{
    struct sandbox *sandbox = sandbox_find(connection->warden, request->id);
    if (sandbox == NULL || sandbox->state != SANDBOX_RUNNING || sandbox->pid == 0)
        return error_set(err, ERROR_NOT_RUNNING, "the sandbox does not run");
    if (connection->warden->cgroups.backend->delegates_folders)
        return send_folder(connection, id, sandbox, request->controller, err);
    return start_job(connection, id, sandbox, err);
}
