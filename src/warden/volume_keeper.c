/* SPDX-License-Identifier: Apache-2.0 */

/*
 * There is no event for "little room is left in btrfs", so this looks again and again, as often as
 * a fast writer makes it necessary. Growing waits for a commit of the file system and shrinking
 * moves data, so both are done by a child.
 */

#include "warden/volume_keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/layout.h"
#include "base/log.h"
#include "warden/volume_resize.h"
#include "warden/warden.h"

enum {
    SAME_MS = 100,             /* two looks within this are one */
    HOLD_MS = 5 * 1000,        /* after a resize that failed */
    QUIET_MS = 60 * 1000,      /* btrfs frees what was removed within half a minute */
    QUIET_LOOK_MS = 10 * 1000, /* between two looks in that time */
    START_ROOM = 128 << 20,    /* bytes: plenty for the start of a sandbox */
};

static void file_path(const struct warden *warden, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/" LAYOUT_VOLUME_IMG, warden->data);
}

static bool refresh(struct warden *warden)
{
    struct volume_keeper *keeper = &warden->volume;
    struct error err;
    keeper->state.max = warden->options.volume_size;
    keeper->known = volume_look(warden->storage.fd, warden->data_fd, &warden->options.reserve,
                                &keeper->state, &err) == 0;
    keeper->looked_ms = warden_now_ms();
    if (!keeper->known)
        log_warn("%s", err.message);
    return keeper->known;
}

void volume_keeper_open(struct warden *warden)
{
    struct volume_keeper *keeper = &warden->volume;
    char path[PATH_MAX];
    struct error err;
    keeper->job.report = (struct source)SOURCE_INIT;
    if (!warden->storage.mounted || !refresh(warden))
        return;
    file_path(warden, path);
    int r = volume_settle(path, warden->storage.fd, &keeper->state, &warden->storage.sparse, &err);
    keeper->can_allocate = r < 0 && warden->storage.sparse;
    if (r < 0)
        log_error("%s", err.message);
    if (warden->storage.sparse)
        log_warn("the volume's file is not allocated in full: when the disk is full, writes of "
                 "sandboxes fail, and what they wrote last may be lost");
    keeper->looked_ms = 0;
    volume_keeper_wake(warden);
}

/* ---- the child ---- */

static int resize(struct job *job, struct error *err)
{
    const struct warden *warden = job->warden;
    const struct volume_keeper *keeper = &warden->volume;
    char path[PATH_MAX];
    bool sparse;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the next warden sizes the volume */
    if (job_orphaned(job))
        return error_set(err, ERROR_CANCELLED, "the warden is gone");
    file_path(warden, path);
    if (keeper->wanted < keeper->state.size)
        setpriority(PRIO_PROCESS, 0, 19);
    if (keeper->can_allocate) /* that chooses a size of its own */
        return volume_settle(path, warden->storage.fd, &keeper->state, &sparse, err);
    return volume_resize(path, warden->storage.fd, keeper->wanted, err);
}

static void resized(struct job *job, const struct error *failure)
{
    struct warden *warden = job->warden;
    struct volume_keeper *keeper = &warden->volume;
    if (failure != NULL) {
        log_warn("the volume stays at %" PRIu64 " MiB: %s", keeper->state.size >> 20,
                 failure->message);
        keeper->hold_ms = warden_now_ms() + HOLD_MS;
    } else if (keeper->can_allocate) {
        log_info("the volume's file is allocated in full now");
        warden->storage.sparse = keeper->can_allocate = false;
    } else {
        log_info("the volume has %" PRIu64 " MiB, it had %" PRIu64, keeper->wanted >> 20,
                 keeper->state.size >> 20);
    }
    keeper->looked_ms = 0;
    volume_keeper_look(warden);
}

/* ---- the look ---- */

static bool anything_writes(const struct warden *warden)
{
    for (const struct sandbox *s = warden->sandboxes; s != NULL; s = s->by_id.next)
        if (!s->spare && !s->paused)
            return true;
    return false;
}

static void set_next_look(struct warden *warden)
{
    struct volume_keeper *keeper = &warden->volume;
    uint64_t now = keeper->looked_ms;
    if (anything_writes(warden)) {
        keeper->quiet_ms = now + QUIET_MS;
        keeper->look_ms = now + volume_look_after_ms(&keeper->state);
    } else {
        keeper->look_ms = now < keeper->quiet_ms ? now + QUIET_LOOK_MS : 0;
    }
}

/* What to do now: nothing, change the size, or fill holes that a full disk has left in the file.
 * An idle server takes no more of the disk than it has, but for what the next start needs. */
static bool is_due(const struct warden *warden)
{
    const struct volume_keeper *keeper = &warden->volume;
    if (keeper->job.pid != 0 || keeper->looked_ms < keeper->hold_ms)
        return false;
    if (keeper->can_allocate)
        return true;
    if (keeper->wanted > keeper->state.size && !anything_writes(warden) &&
        keeper->state.free >= START_ROOM)
        return false;
    return keeper->wanted != keeper->state.size;
}

void volume_keeper_look(struct warden *warden)
{
    struct volume_keeper *keeper = &warden->volume;
    struct error err;
    if (!warden->storage.mounted || warden->stopping ||
        (keeper->looked_ms != 0 && warden_now_ms() - keeper->looked_ms < SAME_MS))
        return;
    if (!refresh(warden)) {
        keeper->look_ms = keeper->looked_ms + QUIET_LOOK_MS;
        return;
    }
    set_next_look(warden);
    if (keeper->job.pid == 0)
        keeper->wanted = volume_wanted_size(&keeper->state);
    if (!is_due(warden))
        return;
    if (job_start(&keeper->job, warden, "cella-volume", resize, resized, &err) < 0) {
        log_warn("resizing the volume: %s", err.message);
        keeper->hold_ms = keeper->looked_ms + HOLD_MS;
    }
}

void volume_keeper_wake(struct warden *warden)
{
    struct volume_keeper *keeper = &warden->volume;
    if (!warden->storage.mounted)
        return;
    uint64_t now = warden_now_ms(), soonest = keeper->looked_ms + SAME_MS;
    keeper->look_ms = soonest > now ? soonest : now;
    keeper->quiet_ms = now + QUIET_MS;
}

void volume_keeper_timer(struct warden *warden)
{
    struct volume_keeper *keeper = &warden->volume;
    if (keeper->look_ms == 0 || warden_now_ms() < keeper->look_ms)
        return;
    keeper->look_ms = 0;
    keeper->looked_ms = 0;
    volume_keeper_look(warden);
}

void volume_keeper_close(struct warden *warden)
{
    struct job *job = &warden->volume.job;
    source_close(&job->report);
    if (job->pid == 0)
        return;
    job_kill(job);
    while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    job->pid = 0;
}
