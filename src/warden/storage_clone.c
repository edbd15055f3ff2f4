/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Copies of layers. Each is made in a directory of its own: making a snapshot holds the lock of the
 * directory that it is made in, through a commit of the file system, and whoever starts a sandbox
 * meanwhile must not wait for that.
 */

#include "warden/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/clone_names.h"
#include "warden/files.h"
#include "warden/plan.h"
#include "warden/storage_layer.h"

#define LAYER "layer"

enum {
    CLONE_PATH_MAX = sizeof(STORAGE_CLONES) + PLAN_ID_MAX + sizeof(LAYER) + 2,
    SWEEP_WAIT_MS = 20 * 1000,
    SWEEP_LOOK_MS = 10,
    /* What a copy may be over its quota by: see ROOM_MIN. */
    SLACK = 4 << 20,
};

static const char inherited_name[] = "trusted.cella.inherited";

/* ---- how much a layer holds ---- */

int storage_inherited_of(int layer, uint64_t *ret_bytes, struct error *err)
{
    uint64_t bytes = 0;
    ssize_t n = fgetxattr(layer, inherited_name, &bytes, sizeof(bytes));
    if (n < 0 && errno != ENODATA && errno != ENOTSUP)
        return error_sys(err, "reading what a layer inherited");
    *ret_bytes = n == sizeof(bytes) ? bytes : 0;
    return 0;
}

int storage_inherited(const struct storage *storage, const char *id, uint64_t *ret_bytes,
                      struct error *err)
{
    _cleanup_fd_ int layer = -1;
    if (dir_open_at(storage->fd, id, &layer, err) < 0)
        return -1;
    return storage_inherited_of(layer, ret_bytes, err);
}

static int set_inherited(int layer, uint64_t bytes, struct error *err)
{
    if (fsetxattr(layer, inherited_name, &bytes, sizeof(bytes), 0) < 0)
        return error_sys(err, "writing down what a layer inherited");
    return 0;
}

int storage_used(const struct storage *storage, const char *id, uint64_t *ret_bytes,
                 struct error *err)
{
    if (!storage_exists(storage, id))
        return error_set(err, ERROR_FILE_NOT_FOUND, "there is no layer %s", id);
    if (!storage_usage(storage, id, ret_bytes))
        *ret_bytes = storage_measure(storage, id);
    return 0;
}

int storage_in_use(struct error *err, uint64_t used, uint64_t quota)
{
    return error_set(err, ERROR_RESOURCE_IN_USE,
                     "disk: %" PRIu64 " MiB are in use, which is more than the new limit of "
                     "%" PRIu64 " MiB",
                     (used + (1 << 20) - 1) >> 20, quota >> 20);
}

/* ---- places ---- */

static void clone_path(char out[CLONE_PATH_MAX], const char *id, const char *rest)
{
    snprintf(out, CLONE_PATH_MAX, STORAGE_CLONES "/%s%s", id, rest);
}

static int open_lock(const struct storage *storage, int *ret_fd, struct error *err)
{
    if (dir_make_at(storage->fd, STORAGE_CLONES, 0700, err) < 0)
        return -1;
    return dir_open_at(storage->fd, STORAGE_CLONES, ret_fd, err);
}

void storage_clone_release(struct clone_place *place)
{
    cleanup_fd(&place->lock);
    cleanup_fd(&place->fd);
    *place = (struct clone_place)CLONE_PLACE_INIT;
}

int storage_clone_begin(const struct storage *storage, const char *id,
                        const struct copy_watch *watch, struct clone_place *ret_place,
                        struct error *err)
{
    _cleanup_(storage_clone_release) struct clone_place place = CLONE_PLACE_INIT;
    if (open_lock(storage, &place.lock, err) < 0)
        return -1;
    if (flock(place.lock, LOCK_SH) < 0)
        return error_sys(err, "locking the copies");
    /* A late child of a warden that was killed: the place may be one of the next warden's. */
    if (watch != NULL && watch->stop(watch->arg))
        return error_set(err, ERROR_CANCELLED, "the warden is gone");
    if (storage_clone_discard(storage, id, err) < 0 || dir_make_at(place.lock, id, 0700, err) < 0 ||
        dir_open_at(place.lock, id, &place.fd, err) < 0)
        return -1;
    *ret_place = (struct clone_place){steal_fd(&place.lock), steal_fd(&place.fd)};
    return 0;
}

struct discard {
    const struct storage *storage;
    struct error *err;
};

static int discard_entry(int dirfd, const char *name, void *arg)
{
    const struct discard *discard = arg;
    return discard->storage->backend->destroy(discard->storage, dirfd, name, discard->err);
}

int storage_clone_discard(const struct storage *storage, const char *id, struct error *err)
{
    char path[CLONE_PATH_MAX];
    struct discard discard = {.storage = storage, .err = err};
    clone_path(path, id, "");
    if (dir_each(storage->fd, path, discard_entry, &discard, err) != 0)
        return -1;
    if (unlinkat(storage->fd, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return error_sys(err, "removing %s", path);
    return 0;
}

/* ---- a copy ---- */

int storage_clone_settle(const struct storage *storage, const char *source,
                         const struct clone_place *place, struct error *err)
{
    if (storage->backend->settle == NULL)
        return 0;
    return storage->backend->settle(storage, source, place->fd, err);
}

int storage_clone_copy(const struct storage *storage, const char *source,
                       const struct clone_place *place, const struct copy_watch *watch,
                       struct error *err)
{
    return storage->backend->copy(storage, source, place->fd, LAYER, watch, err);
}

static int remove_entry(int dirfd, const char *name, void *arg)
{
    return tree_remove_at(dirfd, name, arg);
}

/* What overlayfs keeps in its work folders belongs to a mount that the copy does not have. */
static int clear_work(int layer, struct error *err)
{
    static const char *const folders[] = {"root/work", "usr/work"};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (dir_each(layer, folders[i], remove_entry, err, err) != 0)
            return -1;
    return 0;
}

/* After the snapshot, whose commit has brought the source's count up to date. With quota groups
 * that count by reference, the copy is charged with everything it holds already. */
static int inherit(const struct storage *storage, const char *source, int layer, uint64_t quota,
                   struct error *err)
{
    uint64_t used, inherited;
    if (storage_used(storage, source, &used, err) < 0)
        return -1;
    if (used > quota + SLACK)
        return storage_in_use(err, used, quota);
    inherited = storage->quota_simple ? used : 0;
    return inherited == 0 ? 0 : set_inherited(layer, inherited, err);
}

int storage_clone_finish(const struct storage *storage, const char *source,
                         const struct clone_place *place, uint64_t quota, const char *hostname,
                         struct error *err)
{
    _cleanup_fd_ int layer = -1;
    if (dir_open_at(place->fd, LAYER, &layer, err) < 0 ||
        inherit(storage, source, layer, quota, err) < 0 || clear_work(layer, err) < 0)
        return -1;
    clone_rename(layer, hostname);
    return storage->backend->limit(storage, place->fd, LAYER, quota, err);
}

/* ---- its end ---- */

int storage_clone_commit(const struct storage *storage, const char *id, struct error *err)
{
    char from[CLONE_PATH_MAX], place[CLONE_PATH_MAX];
    clone_path(from, id, "/" LAYER);
    clone_path(place, id, "");
    if (renameat2(storage->fd, from, storage->fd, id, RENAME_NOREPLACE) < 0)
        return error_sys(err, "putting the copy %s into its place", id);
    unlinkat(storage->fd, place, AT_REMOVEDIR);
    return 0;
}

/* Whatever step its child was killed at. Where removing takes long the whole place is put aside: it
 * is an ordinary directory then. */
void storage_clone_abandon(const struct storage *storage, const char *id)
{
    char place[CLONE_PATH_MAX], to[CLONE_PATH_MAX];
    struct error err;
    clone_path(place, id, "");
    snprintf(to, sizeof(to), "%s" STORAGE_DELETED, id);
    if (!storage->backend->slow) {
        if (storage_clone_discard(storage, id, &err) < 0)
            log_error("what is left of the copy %s: %s", id, err.message);
    } else if (renameat2(storage->fd, place, storage->fd, to, RENAME_NOREPLACE) < 0 &&
               errno != ENOENT) {
        log_error("the copy %s stays until the next start: %s", id, strerror(errno));
    }
}

/* A child of a warden that was killed ends soon: it has nobody to work for. */
static bool wait_for_children(int lock)
{
    for (int waited = 0; flock(lock, LOCK_EX | LOCK_NB) < 0; waited += SWEEP_LOOK_MS) {
        if (errno != EWOULDBLOCK || waited >= SWEEP_WAIT_MS)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = SWEEP_LOOK_MS * 1000 * 1000}, NULL);
    }
    return true;
}

static int sweep_entry(int dirfd, const char *name, void *arg)
{
    const struct storage *storage = arg;
    struct error err;
    if (strlen(name) > PLAN_ID_MAX || storage_clone_discard(storage, name, &err) < 0)
        log_warn("a left-over copy %.40s stays", name);
    return 0;
}

int storage_clone_sweep(const struct storage *storage, struct error *err)
{
    _cleanup_fd_ int lock = openat(storage->fd, STORAGE_CLONES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0)
        return errno == ENOENT ? 0 : error_sys(err, "opening %s", STORAGE_CLONES);
    if (!wait_for_children(lock)) {
        log_warn("a copy that an earlier server began is still being made");
        return 0;
    }
    if (dir_each(storage->fd, STORAGE_CLONES, sweep_entry, (void *)storage, err) < 0)
        return -1;
    storage_clone_tidy(storage);
    return 0;
}

void storage_clone_tidy(const struct storage *storage)
{
    unlinkat(storage->fd, STORAGE_CLONES, AT_REMOVEDIR);
}
