/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one way out of a sandbox's life. In this order, so that a warden that is killed anywhere in
 * between leaves a record behind for the next one to go on from:
 *
 *   processes (SIGTERM and a grace if asked for, then SIGKILL to pid 1, which takes its pid
 *   namespace with it, and to the cgroup), cgroups, socket, files (if they are to go), id range,
 *   and the record last.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/warden.h"

enum { RETRY_MS = 5, STUCK_MS = 10 * 1000, GRACE_LOOK_MS = 20 };

static void finish(struct sandbox *sandbox);

/* ---- processes ---- */

/* So that its last process does not have to take it apart (undertaker.h). */
static void hold_mounts(struct sandbox *sandbox)
{
    char path[48];
    if (sandbox->pid == 0 || sandbox->mount_namespace >= 0)
        return;
    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", sandbox->pid);
    sandbox->mount_namespace = open(path, O_RDONLY | O_CLOEXEC);
}

static void kill_now(struct sandbox *sandbox)
{
    hold_mounts(sandbox);
    sandbox->killed = true;
    pause_end(sandbox);
    cgroup_kill(&sandbox->warden->cgroups, sandbox->id);
    if (sandbox->pidfd.fd >= 0)
        syscall(SYS_pidfd_send_signal, sandbox->pidfd.fd, SIGKILL, NULL, 0);
    if (sandbox->pid == 0 || sandbox->pidfd.fd < 0)
        finish(sandbox);
    else
        sandbox_set_deadline(sandbox, warden_now_ms() + STUCK_MS);
}

/* Looks again and again, for as long as the grace lasts. */
static void watch_grace(struct sandbox *sandbox)
{
    uint64_t now = warden_now_ms();
    if (now >= sandbox->kill_at_ms || !cgroup_work_busy(&sandbox->warden->cgroups, sandbox->id)) {
        kill_now(sandbox);
        return;
    }
    uint64_t left = sandbox->kill_at_ms - now;
    sandbox_set_deadline(sandbox, now + (left < GRACE_LOOK_MS ? left : GRACE_LOOK_MS));
}

static void begin_grace(struct sandbox *sandbox, uint64_t grace_ms)
{
    cgroup_signal_work(&sandbox->warden->cgroups, sandbox->id, SIGTERM);
    pause_end(sandbox); /* the signal comes first, so that nothing else is done any more */
    sandbox->kill_at_ms = warden_now_ms() + grace_ms;
    watch_grace(sandbox);
}

void sandbox_end(struct sandbox *sandbox, uint64_t grace_ms)
{
    enum sandbox_state before = sandbox->state;
    sandbox->state = SANDBOX_ENDING;
    source_close(&sandbox->channel);
    if (before == SANDBOX_ENDING && sandbox->killed)
        return;
    if (before == SANDBOX_ENDING && grace_ms > 0) { /* a shorter grace than before counts */
        uint64_t at = warden_now_ms() + grace_ms;
        if (at < sandbox->kill_at_ms)
            sandbox->kill_at_ms = at;
        return;
    }
    if (grace_ms > 0 && before == SANDBOX_RUNNING)
        begin_grace(sandbox, grace_ms);
    else
        kill_now(sandbox);
}

void sandbox_fail(struct sandbox *sandbox, const struct error *err)
{
    sandbox->failure = *err;
    sandbox->remove = sandbox->remove || sandbox->fresh;
    sandbox_end(sandbox, 0);
}

static void reap(struct sandbox *sandbox)
{
    siginfo_t info = {0};
    bool by_kill = !sandbox->ours; /* whoever reaps an adopted one knows; we do not */
    if (sandbox->ours && waitid(P_PID, (id_t)sandbox->pid, &info, WEXITED | WNOHANG) == 0)
        by_kill = info.si_code == CLD_KILLED && info.si_status == SIGKILL;
    sandbox->oom =
        by_kill && !sandbox->killed && cgroup_oom_kills(&sandbox->warden->cgroups, sandbox->id) > 0;
    sandbox->pid = 0;
    source_close(&sandbox->pidfd);
}

void sandbox_died(struct sandbox *sandbox)
{
    reap(sandbox);
    if (sandbox->state == SANDBOX_RUNNING) {
        sandbox->announce = true;
        log_info("sandbox %s ended by itself%s", sandbox->id,
                 sandbox->oom ? " (out of memory)" : "");
    }
    if (sandbox->state == SANDBOX_MAKING) {
        /* What it said before it died is still in the channel, whose end the loop sees next. */
        if (sandbox->channel.fd >= 0)
            return;
        error_set(&sandbox->failure, ERROR_INTERNAL, "the sandbox's first process died");
        sandbox->remove = sandbox->remove || sandbox->fresh;
    }
    sandbox->state = SANDBOX_ENDING;
    kill_now(sandbox); /* nothing is left, unless somebody else put a process into its cgroup */
}

void sandbox_timer(struct sandbox *sandbox)
{
    struct error err;
    sandbox_set_deadline(sandbox, 0);
    if (sandbox->state == SANDBOX_RUNNING) {
        pause_timer(sandbox);
    } else if (sandbox->state == SANDBOX_MAKING) {
        error_set(&err, ERROR_TIMEOUT, "the sandbox took too long to start");
        sandbox_fail(sandbox, &err);
    } else if (sandbox->state == SANDBOX_ENDING && !sandbox->killed) {
        watch_grace(sandbox);
    } else if (sandbox->state == SANDBOX_ENDING && sandbox->pid != 0) {
        log_error("sandbox %s: pid %d does not die", sandbox->id, sandbox->pid);
        kill_now(sandbox);
    } else if (sandbox->state == SANDBOX_ENDING) {
        finish(sandbox);
    }
}

/* ---- what is left ---- */

/* A fork, for storage whose removal walks a tree. */
int removal_start(struct warden *warden, const char *id, struct waiter **waiters, struct error *err)
{
    struct removal *removal = calloc(1, sizeof(*removal));
    if (removal == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
    snprintf(removal->id, sizeof(removal->id), "%s", id);
    pid_t parent = getpid();
    removal->pid = fork();
    if (removal->pid == 0) {
        struct error failure;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        _exit(storage_destroy(&warden->storage, id, &failure) < 0 ? 1 : 0);
    }
    if (removal->pid < 0) {
        error_sys(err, "starting a removal");
        free(removal);
        return -1;
    }
    removal->waiters = steal_ptr(*waiters);
    removal->next = warden->removals;
    warden->removals = removal;
    return 0;
}

static bool being_removed(const struct warden *warden, const char *id)
{
    const struct removal *removal = warden->removals;
    while (removal != NULL && strcmp(removal->id, id) != 0)
        removal = removal->next;
    return removal != NULL;
}

static int remove_files(struct sandbox *sandbox, struct error *err)
{
    const struct storage *storage = &sandbox->warden->storage;
    if (!storage_exists(storage, sandbox->id))
        return 0;
    if (storage_detach(storage, sandbox->id, err) < 0)
        return -1;
    if (storage->backend->slow)
        return removal_start(sandbox->warden, sandbox->id, &sandbox->waiters, err);
    return storage_destroy(storage, sandbox->id, err);
}

static void answer(struct sandbox *sandbox, const struct error *removal_failure)
{
    struct warden *warden = sandbox->warden;
    struct error err = sandbox->failure;
    if (err.code == ERROR_NONE)
        error_set(&err, ERROR_CANCELLED, "the sandbox was stopped while it was made");
    answer_waiters(warden, &sandbox->starters, &err);
    answer_waiters(warden, &sandbox->waiters, removal_failure);
    if (sandbox->announce)
        announce_exit(sandbox);
}

/* All processes are dead. A cgroup can be busy for a moment longer. */
static void finish(struct sandbox *sandbox)
{
    struct warden *warden = sandbox->warden;
    struct error err = {0}, removal_failure;
    const struct error *failed = NULL;
    int r = cgroup_remove(&warden->cgroups, sandbox->id, &err);
    resctrl_remove(&warden->resctrl, sandbox->id);
    if (r < 0)
        log_error("sandbox %s: %s", sandbox->id, err.message);
    if (r <= 0) {
        sandbox_set_deadline(sandbox, warden_now_ms() + RETRY_MS);
        return;
    }
    /* What is being copied is not taken away; a copy that nobody wants any more is, all of it. */
    if (sandbox->remove && (copy_uses(warden, sandbox->id) || being_removed(warden, sandbox->id))) {
        copy_cancel(warden, sandbox->id);
        sandbox_set_deadline(sandbox, warden_now_ms() + RETRY_MS);
        return;
    }
    if (unlinkat(warden->agents_fd, sandbox->id, 0) < 0 && errno != ENOENT)
        log_error("sandbox %s: its socket stays", sandbox->id);
    if (sandbox->remove && remove_files(sandbox, &removal_failure) < 0) {
        log_error("sandbox %s: %s", sandbox->id, removal_failure.message);
        failed = &removal_failure;
    }
    net_detach(warden, sandbox);
    if (sandbox->slot >= 0)
        ids_give(&warden->ids, sandbox->id, sandbox->slot);
    if (record_remove(warden->records_fd, sandbox->id, &err) < 0)
        log_error("sandbox %s: %s", sandbox->id, err.message);
    answer(sandbox, failed);
    sandbox_free(sandbox);
}
