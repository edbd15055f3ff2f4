/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clones: the writable layer of one sandbox becomes another one's.
 *
 * A child does the work, in this order: what is dirty goes to disk while the source still runs; the
 * source is frozen; the copy is made; the source goes on. So it stands still for the moment of a
 * snapshot, however much it has written. Whoever dies in between, the source goes on: the child
 * outlives its warden (job.h), the warden thaws after every child, and a new warden thaws what it
 * adopts.
 *
 * The record of a copy that is under way is its folder (storage.h); it becomes a layer by one
 * rename, here in the warden, and until then it is nothing. Copies of one source are made one after
 * the other, since each of them thaws it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/program.h"
#include "warden/fault.h"
#include "warden/job.h"
#include "warden/warden.h"

enum { FREEZE_TIMEOUT_MS = 10 * 1000, COPIES_MAX = 1024, COPIES_AT_ONCE = 8 };

struct copy {
    struct copy *next; /* oldest first */
    struct job job;    /* pid 0: it waits for its turn */
    char id[PLAN_ID_MAX + 1];
    char source[PLAN_ID_MAX + 1];
    char hostname[NAME_MAX_LEN + 1];
    uint64_t disk_bytes;
    bool source_runs;   /* when it began */
    bool source_paused; /* it stands still, and goes on doing so */
    uint64_t began_ms;
    struct waiter *waiters;
};

/* ---- in the child ---- */

static bool orphaned(void *arg)
{
    return job_orphaned(arg);
}

/* For tests that kill whoever is at work at this point. */
static void hang_if_asked(const struct warden *warden)
{
    if (fault_check(warden->options.fail_at, "copy-hang", NULL) < 0)
        pause();
}

static int copy_frozen(const struct copy *copy, const struct clone_place *place, struct error *err)
{
    const struct warden *warden = copy->job.warden;
    const struct copy_watch watch = {.stop = orphaned, .arg = (void *)&copy->job};
    const bool freezes = copy->source_runs && !copy->source_paused;
    if (freezes && cgroup_freeze(&warden->cgroups, copy->source, FREEZE_TIMEOUT_MS, err) < 0)
        return -1;
    hang_if_asked(warden);
    int r = storage_clone_copy(&warden->storage, copy->source, place, &watch, err);
    if (freezes)
        cgroup_thaw(&warden->cgroups, copy->source);
    return r;
}

static int make_copy(const struct copy *copy, const struct clone_place *place, struct error *err)
{
    const struct warden *warden = copy->job.warden;
    if (job_orphaned(&copy->job))
        return error_set(err, ERROR_CANCELLED, "the warden is gone");
    if (copy->source_runs && storage_clone_settle(&warden->storage, copy->source, place, err) < 0)
        return -1;
    if (copy_frozen(copy, place, err) < 0)
        return -1;
    if (fault_check(warden->options.fail_at, "copy-lost", NULL) < 0)
        return error_set(err, ERROR_FILE_NOT_FOUND, "a file of the copy is lost, as asked");
    if (fault_check(warden->options.fail_at, "copy-finish", err) < 0)
        return -1;
    return storage_clone_finish(&warden->storage, copy->source, place, copy->disk_bytes,
                                copy->hostname, err);
}

static int run(struct job *job, struct error *err)
{
    const struct copy *copy = container_of(job, struct copy, job);
    const struct storage *storage = &job->warden->storage;
    const struct copy_watch watch = {.stop = orphaned, .arg = job};
    _cleanup_(storage_clone_release) struct clone_place place = CLONE_PLACE_INIT;
    program_allow_files(); /* a tree may be deep, and takes some for each level */
    if (storage_clone_begin(storage, copy->id, &watch, &place, err) < 0)
        return -1;
    if (make_copy(copy, &place, err) == 0 && !job_orphaned(job))
        return 0;
    storage_clone_discard(storage, copy->id, NULL);
    return err->code != ERROR_NONE ? -1 : error_set(err, ERROR_CANCELLED, "the warden is gone");
}

/* ---- in the warden ---- */

static void start_next(struct warden *warden);

static void copy_free(struct copy *copy)
{
    struct copy **at = &copy->job.warden->copies;
    while (*at != copy)
        at = &(*at)->next;
    *at = copy->next;
    free(copy);
}

static void answer(struct copy *copy, const struct error *failure)
{
    struct warden *warden = copy->job.warden;
    answer_waiters(warden, &copy->waiters, failure);
    copy_free(copy);
    if (warden->copies == NULL)
        storage_clone_tidy(&warden->storage);
}

/* What a child that was killed has left is put aside, and goes in its own time. */
static void clear_away(struct copy *copy)
{
    struct warden *warden = copy->job.warden;
    struct waiter *nobody = NULL;
    struct error err;
    storage_clone_abandon(&warden->storage, copy->id);
    if (warden->storage.backend->slow && removal_start(warden, copy->id, &nobody, &err) < 0)
        log_error("what is left of the copy %s: %s", copy->id, err.message);
}

/* FILE_NOT_FOUND means that the source has no files, and nothing else, since a clone then starts
 * without any. A file that is missed while copying is a reason to try again. */
static struct error reason_of(const struct error *failure)
{
    struct error reason = *failure;
    if (reason.code == ERROR_FILE_NOT_FOUND)
        reason.code = ERROR_CONFLICT;
    return reason;
}

static void done(struct job *job, const struct error *failure)
{
    struct copy *copy = container_of(job, struct copy, job);
    struct warden *warden = job->warden;
    struct error err, reason;
    if (copy->source_runs && !copy->source_paused && failure != NULL)
        cgroup_thaw(&warden->cgroups, copy->source);
    if (failure == NULL && (fault_check(warden->options.fail_at, "copy-commit", &err) < 0 ||
                            storage_clone_commit(&warden->storage, copy->id, &err) < 0))
        failure = &err;
    if (failure != NULL) {
        reason = reason_of(failure);
        failure = &reason;
        log_warn("copying sandbox %s to %s: %s", copy->source, copy->id, failure->message);
        clear_away(copy);
    } else {
        log_info("copied sandbox %s to %s in %llu ms", copy->source, copy->id,
                 (unsigned long long)(warden_now_ms() - copy->began_ms));
    }
    answer(copy, failure);
    start_next(warden);
}

/* What is asked for has to be possible when it is asked, and when its turn has come. */
static int check_source(struct warden *warden, const char *source, bool *ret_runs, bool *ret_paused,
                        struct error *err)
{
    const struct sandbox *sandbox = sandbox_find(warden, source);
    if (sandbox != NULL && sandbox->state != SANDBOX_RUNNING)
        return error_set(err, ERROR_CONFLICT, "sandbox %s is being %s", source,
                         sandbox->state == SANDBOX_MAKING ? "started" : "stopped");
    if (sandbox != NULL && sandbox->freezing.fd >= 0)
        return error_set(err, ERROR_CONFLICT, "sandbox %s is being paused", source);
    if (!storage_exists(&warden->storage, source))
        return error_set(err, ERROR_FILE_NOT_FOUND, "sandbox %s has no files", source);
    *ret_runs = sandbox != NULL;
    *ret_paused = sandbox != NULL && sandbox->paused;
    return 0;
}

static bool may_start(const struct warden *warden, const struct copy *copy)
{
    unsigned active = 0;
    for (const struct copy *c = warden->copies; c != NULL; c = c->next) {
        active += c->job.pid != 0;
        if (c != copy && c->job.pid != 0 && strcmp(c->source, copy->source) == 0)
            return false;
    }
    return copy->job.pid == 0 && active < COPIES_AT_ONCE;
}

static void start_next(struct warden *warden)
{
    for (struct copy *copy = warden->copies, *next; copy != NULL; copy = next) {
        struct error err;
        next = copy->next;
        if (!may_start(warden, copy))
            continue;
        copy->began_ms = warden_now_ms();
        if (check_source(warden, copy->source, &copy->source_runs, &copy->source_paused, &err) <
                0 ||
            job_start(&copy->job, warden, "cella-copy", run, done, &err) < 0)
            answer(copy, &err);
    }
}

static struct copy *find_copy(const struct warden *warden, const char *id)
{
    struct copy *copy = warden->copies;
    while (copy != NULL && strcmp(copy->id, id) != 0)
        copy = copy->next;
    return copy;
}

static int add_copy(struct connection *connection, uint32_t id, const struct warden_clone *request,
                    struct error *err)
{
    struct warden *warden = connection->warden;
    struct copy **at = &warden->copies;
    size_t count = 0;
    for (; *at != NULL; at = &(*at)->next)
        count++;
    if (count >= COPIES_MAX)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "%d copies are waiting already", COPIES_MAX);
    struct copy *copy = calloc(1, sizeof(*copy));
    if (copy == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
    copy->job = (struct job){.warden = warden, .report = SOURCE_INIT};
    snprintf(copy->id, sizeof(copy->id), "%s", request->id);
    snprintf(copy->source, sizeof(copy->source), "%s", request->source);
    snprintf(copy->hostname, sizeof(copy->hostname), "%s", request->hostname);
    copy->disk_bytes = request->disk_bytes;
    if (waiter_add(&copy->waiters, connection, id, err) < 0) {
        free(copy);
        return -1;
    }
    *at = copy;
    start_next(warden);
    return 0;
}

int copy_request(struct connection *connection, uint32_t id, const struct warden_clone *request,
                 struct error *err)
{
    struct warden *warden = connection->warden;
    bool runs, paused;
    if (plan_check_clone(request, err) < 0)
        return -1;
    if (warden->stopping)
        return error_set(err, ERROR_UNAVAILABLE, "the server is shutting down");
    struct copy *same = find_copy(warden, request->id);
    if (same != NULL && strcmp(same->source, request->source) == 0)
        return waiter_add(&same->waiters, connection, id, err);
    if (same != NULL || sandbox_find(warden, request->id) != NULL)
        return error_set(err, ERROR_CONFLICT, "sandbox %s is being made or ended", request->id);
    if (storage_exists(&warden->storage, request->id)) { /* asked again: it is there */
        wire_encode(&connection->out, &wire_ok_schema, id, NULL);
        connection_flush(connection);
        return 0;
    }
    if (check_source(warden, request->source, &runs, &paused, err) < 0)
        return -1;
    return add_copy(connection, id, request, err);
}

int copy_each(const struct warden *warden, storage_fn fn, void *arg)
{
    int r = 0;
    for (const struct copy *c = warden->copies; c != NULL && r == 0; c = c->next)
        r = fn(c->id, arg);
    return r;
}

bool copy_uses(const struct warden *warden, const char *id)
{
    for (const struct copy *c = warden->copies; c != NULL; c = c->next)
        if (strcmp(c->id, id) == 0 || strcmp(c->source, id) == 0)
            return true;
    return false;
}

bool copy_stands_on(const struct warden *warden, const char *id)
{
    for (const struct copy *c = warden->copies; c != NULL; c = c->next)
        if (c->job.pid != 0 && strcmp(c->source, id) == 0)
            return true;
    return false;
}

/* A snapshot does not mind that its source is started; walking the tree does. */
bool copy_blocks_start(const struct warden *warden, const char *id)
{
    for (const struct copy *c = warden->copies; c != NULL; c = c->next)
        if (strcmp(c->id, id) == 0 ||
            (warden->storage.backend->slow && c->job.pid != 0 && strcmp(c->source, id) == 0))
            return true;
    return false;
}

static void cancel(struct copy *copy)
{
    struct error err;
    error_set(&err, ERROR_CANCELLED, "the copy was given up");
    if (copy->job.pid != 0)
        job_kill(&copy->job); /* done() does the rest */
    else
        answer(copy, &err);
}

void copy_cancel(struct warden *warden, const char *id)
{
    struct copy *copy = find_copy(warden, id);
    if (copy != NULL)
        cancel(copy);
}

void copy_cancel_all(struct warden *warden)
{
    for (struct copy *copy = warden->copies, *next; copy != NULL; copy = next) {
        next = copy->next;
        cancel(copy);
    }
}
