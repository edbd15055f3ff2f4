/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chooses where writable layers live, and what is the same for every backend: the folders inside
 * a layer, and removal in two steps (out of sight at once, gone when it is gone).
 */

#include "warden/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/log.h"
#include "warden/files.h"
#include "warden/plan.h"
#include "warden/storage_layer.h"
#include "warden/volume.h"

enum { LAYER_NAME_MAX = PLAN_ID_MAX + sizeof(STORAGE_DELETED) };

/* Parents first. The modes of the uppers become those of / and /usr. */
static const struct {
    const char *path;
    mode_t mode;
} layer_dirs[] = {
    {"root", 0700}, {"root/upper", 0755}, {"root/work", 0755},
    {"usr", 0700},  {"usr/upper", 0755},  {"usr/work", 0755},
};

/* A marker that volatile overlays leave behind and that keeps the layer from being mounted again.
 * Ours are not volatile; a layer may come from elsewhere. */
static const char *const layer_leftovers[] = {"root/work/work/incompat", "usr/work/work/incompat"};

bool storage_kind_parse(const char *name, enum storage_kind *ret_kind)
{
    static const char *const names[] = {
        [STORAGE_AUTO] = "auto", [STORAGE_BTRFS] = "btrfs", [STORAGE_PLAIN] = "plain"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0) {
            *ret_kind = (enum storage_kind)i;
            return true;
        }
    return false;
}

/* ---- choice ---- */

static bool is_btrfs(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == BTRFS_SUPER_MAGIC;
}

static bool is_mount_point(const char *data, const char *volume)
{
    struct stat above, below;
    return stat(data, &above) == 0 && stat(volume, &below) == 0 && above.st_dev != below.st_dev;
}

static int stop_at_first(int dirfd, const char *name, void *arg)
{
    return 1;
}

static void use_plain(struct storage *storage)
{
    storage->backend = &storage_plain;
    snprintf(storage->description, sizeof(storage->description),
             "plain directories, quota not enforced");
}

static int use_loop_volume(struct storage *storage, const char *file, const char *volume,
                           uint64_t max, struct error *err)
{
    bool mounted = is_mount_point(storage->data, volume);
    if (!mounted && volume_mount(file, volume, max, err) < 0)
        return -1;
    if (mounted && volume_stop_discard(file, err) < 0)
        return -1;
    storage->backend = &storage_btrfs;
    storage->mounted = true;
    return 0;
}

int storage_mount(struct storage *storage, const char *data, enum storage_kind kind,
                  uint64_t volume_max, struct error *err)
{
    char volume[PATH_MAX], file[PATH_MAX];
    *storage = (struct storage){.data = data, .fd = -1};
    snprintf(volume, sizeof(volume), "%s/" LAYOUT_VOLUME, data);
    snprintf(file, sizeof(file), "%s/" LAYOUT_VOLUME_IMG, data);
    if (dir_make_at(AT_FDCWD, volume, 0700, err) < 0)
        return -1;

    bool has_file = access(file, F_OK) == 0;
    /* Layers that are plain stay where they are found. */
    bool has_plain = !has_file && !is_btrfs(volume) &&
                     dir_each(AT_FDCWD, volume, stop_at_first, NULL, NULL) == 1;
    if (kind == STORAGE_PLAIN || (kind == STORAGE_AUTO && has_plain)) {
        if (has_file)
            return error_set(err, ERROR_CONFLICT,
                             "the sandboxes' files are in %s: --storage plain cannot see them",
                             file);
        use_plain(storage);
        return 0;
    }
    if (!has_file && is_btrfs(data)) {
        storage->backend = &storage_btrfs;
        return 0;
    }
    struct error failure;
    if (use_loop_volume(storage, file, volume, volume_max, &failure) == 0)
        return 0;
    if (kind == STORAGE_AUTO && failure.code == ERROR_UNAVAILABLE && !has_file) {
        log_warn("no btrfs volume (%s): quotas of sandboxes are not enforced", failure.message);
        use_plain(storage);
        return 0;
    }
    *err = failure;
    return -1;
}

/* ---- life ---- */

static bool is_deleted_name(const char *name)
{
    size_t len = strlen(name), suffix = strlen(STORAGE_DELETED);
    return len > suffix && strcmp(name + len - suffix, STORAGE_DELETED) == 0;
}

static int sweep_entry(int dirfd, const char *name, void *arg)
{
    const struct storage *storage = arg;
    struct error err;
    if (is_deleted_name(name) && storage->backend->destroy(storage, dirfd, name, &err) < 0)
        log_warn("left-over layer %s: %s", name, err.message);
    return 0;
}

int storage_open(struct storage *storage, struct error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" LAYOUT_VOLUME, storage->data);
    if (dir_open_at(AT_FDCWD, path, &storage->fd, err) < 0)
        return -1;
    if (fchmod(storage->fd, 0700) < 0)
        return error_sys(err, "closing %s to others", path);
    if (storage->backend == &storage_btrfs)
        storage_btrfs_enable_quota(storage);
    if (storage_clone_sweep(storage, err) < 0)
        return -1;
    return dir_each(storage->fd, ".", sweep_entry, storage, err);
}

void storage_close(struct storage *storage)
{
    cleanup_fd(&storage->fd);
    storage->fd = -1;
}

int storage_unmount(const struct storage *storage, struct error *err)
{
    char path[PATH_MAX];
    if (!storage->mounted)
        return 0;
    snprintf(path, sizeof(path), "%s/" LAYOUT_VOLUME, storage->data);
    return volume_unmount(path, err);
}

/* ---- layers ---- */

bool storage_exists(const struct storage *storage, const char *id)
{
    struct stat st;
    return fstatat(storage->fd, id, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int storage_create(const struct storage *storage, const char *id, uint64_t quota, bool *ret_fresh,
                   struct error *err)
{
    bool fresh = false;
    if (!storage_exists(storage, id) && storage->backend->create(storage, id, &fresh, err) < 0)
        return -1;
    *ret_fresh = fresh; /* said at once: who rolls back has to know */
    if (storage->backend->limit(storage, storage->fd, id, quota, err) < 0)
        return -1;

    _cleanup_fd_ int layer = -1;
    if (dir_open_at(storage->fd, id, &layer, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(layer_dirs); i++)
        if (dir_make_at(layer, layer_dirs[i].path, layer_dirs[i].mode, err) < 0)
            return -1;
    for (size_t i = 0; !fresh && i < ARRAY_LEN(layer_leftovers); i++)
        if (tree_remove_at(layer, layer_leftovers[i], err) < 0)
            return -1;
    return 0;
}

int storage_fits(const struct storage *storage, const char *id, uint64_t quota, struct error *err)
{
    uint64_t used;
    if (!storage_exists(storage, id))
        return 0;
    if (storage_used(storage, id, &used, err) < 0)
        return -1;
    return used > quota ? storage_in_use(err, used, quota) : 0;
}

int storage_limit(const struct storage *storage, const char *id, uint64_t quota, struct error *err)
{
    if (!storage_exists(storage, id))
        return 0;
    return storage->backend->limit(storage, storage->fd, id, quota, err);
}

static void deleted_name(char out[LAYER_NAME_MAX], const char *id)
{
    snprintf(out, LAYER_NAME_MAX, "%s" STORAGE_DELETED, id);
}

int storage_detach(const struct storage *storage, const char *id, struct error *err)
{
    char name[LAYER_NAME_MAX];
    deleted_name(name, id);
    if (renameat(storage->fd, id, storage->fd, name) == 0 || errno == ENOENT)
        return 0;
    /* No room for another name; removing takes none (btrfs keeps a reserve for that). */
    if (errno == ENOSPC || errno == EDQUOT)
        return storage->backend->destroy(storage, storage->fd, id, err);
    if (errno != EEXIST && errno != ENOTEMPTY)
        return error_sys(err, "removing the layer %s", id);
    /* One of that name is still there from before. */
    if (storage->backend->destroy(storage, storage->fd, name, err) < 0)
        return -1;
    if (renameat(storage->fd, id, storage->fd, name) < 0)
        return error_sys(err, "removing the layer %s", id);
    return 0;
}

int storage_destroy(const struct storage *storage, const char *id, struct error *err)
{
    char name[LAYER_NAME_MAX];
    deleted_name(name, id);
    return storage->backend->destroy(storage, storage->fd, name, err);
}

struct layer_walk {
    storage_fn fn;
    void *arg;
};

static int visit_layer(int dirfd, const char *name, void *arg)
{
    const struct layer_walk *walk = arg;
    return walk->fn(name, walk->arg);
}

int storage_each(const struct storage *storage, storage_fn fn, void *arg, struct error *err)
{
    struct layer_walk walk = {.fn = fn, .arg = arg};
    return dir_each(storage->fd, ".", visit_layer, &walk, err);
}

/* ---- what a layer takes ---- */

bool storage_usage(const struct storage *storage, const char *id, uint64_t *ret_bytes)
{
    uint64_t own, inherited;
    if (storage->backend->usage == NULL || storage->backend->usage(storage, id, &own, NULL) < 0 ||
        storage_inherited(storage, id, &inherited, NULL) < 0)
        return false;
    *ret_bytes = own + inherited;
    return true;
}

enum {
    BLOCK_SIZE = 512,        /* of st_blocks, whatever the file system's are */
    MEASURE_DEPTH_MAX = 256, /* each level is a descriptor: what lies deeper is not counted */
};

struct measure {
    uint64_t bytes;
    unsigned depth;
};

static int measure_entry(int dirfd, const char *name, void *arg)
{
    struct measure *measure = arg;
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* removed meanwhile */
    if (S_ISDIR(st.st_mode) && measure->depth < MEASURE_DEPTH_MAX) {
        measure->depth++;
        dir_each(dirfd, name, measure_entry, measure, NULL);
        measure->depth--;
    }
    /* Each of a file's names takes its share, so that together they take what the file does. */
    uint64_t names = S_ISDIR(st.st_mode) || st.st_nlink == 0 ? 1 : st.st_nlink;
    measure->bytes += (uint64_t)st.st_blocks * BLOCK_SIZE / names;
    return 0;
}

uint64_t storage_measure(const struct storage *storage, const char *id)
{
    struct measure measure = {0};
    measure_entry(storage->fd, id, &measure);
    return measure.bytes;
}
