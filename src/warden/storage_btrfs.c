/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Subvolumes by ioctl: a tenth of a millisecond, where the command-line tool takes six.
 *
 * Simple quotas (Linux 6.7) charge whoever first wrote an extent and cost next to nothing; full
 * quota groups count by reference. Which one is in force is in the storage's description.
 */

#include "warden/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/files.h"
#include "warden/storage_layer.h"

enum { QUOTA_ENABLE_SIMPLE = 4 }; /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA of newer headers */

/* Where sysfs has this file system's quota groups (Linux 5.9). */
static void find_qgroups(struct storage *storage)
{
    struct btrfs_ioctl_fs_info_args info = {0};
    char uuid[40];
    size_t len = 0;
    if (ioctl(storage->fd, BTRFS_IOC_FS_INFO, &info) < 0)
        return;
    for (int i = 0; i < BTRFS_FSID_SIZE; i++)
        len += (size_t)snprintf(uuid + len, sizeof(uuid) - len, "%s%02x",
                                i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.fsid[i]);
    snprintf(storage->qgroups, sizeof(storage->qgroups), "/sys/fs/btrfs/%s/qgroups", uuid);
}

void storage_btrfs_enable_quota(struct storage *storage)
{
    const char *where = storage->mounted ? "loop volume" : "folder";
    struct btrfs_ioctl_quota_ctl_args args = {.cmd = QUOTA_ENABLE_SIMPLE};
    const char *quota = "simple quota";
    if (ioctl(storage->fd, BTRFS_IOC_QUOTA_CTL, &args) < 0) {
        args = (struct btrfs_ioctl_quota_ctl_args){.cmd = BTRFS_QUOTA_CTL_ENABLE};
        quota = "quota groups";
        if (ioctl(storage->fd, BTRFS_IOC_QUOTA_CTL, &args) < 0) {
            quota = "quota not enforced";
            log_warn("btrfs quotas cannot be enabled: %s", strerror(errno));
            storage->quota_off = true;
        }
    } else {
        storage->quota_simple = true;
    }
    snprintf(storage->description, sizeof(storage->description), "btrfs %s, %s", where, quota);
    if (!storage->quota_off)
        find_qgroups(storage);
}

static int create(const struct storage *storage, const char *id, bool *ret_fresh, struct error *err)
{
    struct btrfs_ioctl_vol_args_v2 args = {0};
    snprintf(args.name, sizeof(args.name), "%s", id);
    if (ioctl(storage->fd, BTRFS_IOC_SUBVOL_CREATE_V2, &args) < 0)
        return error_sys(err, "making the subvolume %s", id);
    *ret_fresh = true;
    if (fchmodat(storage->fd, id, 0700, 0) < 0)
        return error_sys(err, "closing the subvolume %s to others", id);
    return 0;
}

/* ---- quota ---- */

/* The smallest room that a layer is given: a sandbox has to come up even when what it inherited
 * fills its quota. */
enum { ROOM_MIN = 4 << 20 };

static int limit(const struct storage *storage, int dirfd, const char *name, uint64_t bytes,
                 struct error *err)
{
    if (storage->quota_off)
        return 0;
    _cleanup_fd_ int fd = -1;
    uint64_t inherited;
    if (dir_open_at(dirfd, name, &fd, err) < 0 || storage_inherited_of(fd, &inherited, err) < 0)
        return -1;
    uint64_t room = bytes > inherited + ROOM_MIN ? bytes - inherited : ROOM_MIN;
    struct btrfs_ioctl_qgroup_limit_args args = {
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = room}};
    if (ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &args) < 0)
        return error_sys(err, "setting the quota of %s", name);
    return 0;
}

/* ---- snapshots and removal ---- */

static int snapshot(const struct storage *storage, const char *id, int dirfd, const char *name,
                    struct error *err)
{
    _cleanup_fd_ int source = -1;
    if (dir_open_at(storage->fd, id, &source, err) < 0)
        return -1;
    struct btrfs_ioctl_vol_args_v2 args = {.fd = source};
    snprintf(args.name, sizeof(args.name), "%s", name);
    if (ioctl(dirfd, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0)
        return error_sys(err, "making a snapshot of %s", id);
    return 0;
}

static int copy(const struct storage *storage, const char *id, int dirfd, const char *name,
                const struct copy_watch *watch, struct error *err)
{
    return snapshot(storage, id, dirfd, name, err);
}

static int destroy(const struct storage *storage, int dirfd, const char *name, struct error *err)
{
    struct btrfs_ioctl_vol_args_v2 args = {0};
    snprintf(args.name, sizeof(args.name), "%s", name);
    if (ioctl(dirfd, BTRFS_IOC_SNAP_DESTROY_V2, &args) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTDIR || errno == EINVAL) /* not a subvolume: somebody's file */
        return tree_remove_at(dirfd, name, err);
    return error_sys(err, "removing the subvolume %s", name);
}

static int read_qgroup(const struct storage *storage, uint64_t subvolume, const char *file,
                       uint64_t *ret_value, struct error *err)
{
    char path[sizeof(storage->qgroups) + 48], text[32];
    snprintf(path, sizeof(path), "%s/0_%" PRIu64 "/%s", storage->qgroups, subvolume, file);
    if (file_read_at(AT_FDCWD, path, text, sizeof(text), err) < 0)
        return -1;
    *ret_value = strtoull(text, NULL, 10);
    return 0;
}

/* What the quota is compared with: extents that are accounted for, and data that has been written
 * but not to the disk yet. The quota tree would give the first alone, as of the last commit. */
static int usage(const struct storage *storage, const char *id, uint64_t *ret_bytes,
                 struct error *err)
{
    _cleanup_fd_ int fd = -1;
    struct btrfs_ioctl_ino_lookup_args lookup = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
    uint64_t referenced, reserved;
    if (storage->qgroups[0] == '\0')
        return error_set(err, ERROR_UNAVAILABLE, "quota groups are not shown here");
    if (dir_open_at(storage->fd, id, &fd, err) < 0)
        return -1;
    if (ioctl(fd, BTRFS_IOC_INO_LOOKUP, &lookup) < 0)
        return error_sys(err, "finding the subvolume of %s", id);
    if (read_qgroup(storage, lookup.treeid, "referenced", &referenced, err) < 0 ||
        read_qgroup(storage, lookup.treeid, "rsv_data", &reserved, err) < 0)
        return -1;
    *ret_bytes = referenced + reserved;
    return 0;
}

/* A snapshot begins by writing back what is dirty in its source, and only there: syncfs() would
 * wait for every other sandbox's data too. So one is made and thrown away. */
static int settle(const struct storage *storage, const char *id, int scratch, struct error *err)
{
    static const char name[] = "settle";
    if (destroy(storage, scratch, name, err) < 0 || snapshot(storage, id, scratch, name, err) < 0)
        return -1;
    return destroy(storage, scratch, name, err);
}

const struct storage_backend storage_btrfs = {
    .name = "btrfs",
    .create = create,
    .limit = limit,
    .destroy = destroy,
    .usage = usage,
    .settle = settle,
    .copy = copy,
};
