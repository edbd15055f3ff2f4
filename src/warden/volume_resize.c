/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order makes a crash harmless. The file system is never larger than its device, nor the device
 * than the file: growing begins with the file, and shrinking ends with it.
 */

#include "warden/volume_resize.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/btrfs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/loopdev.h"

#define MIB (UINT64_C(1) << 20)

enum { BLOCK = 512 }; /* what st_blocks counts in */

static int device_info(int volume, struct btrfs_ioctl_dev_info_args *info, struct error *err)
{
    *info = (struct btrfs_ioctl_dev_info_args){.devid = 1};
    if (ioctl(volume, BTRFS_IOC_DEV_INFO, info) < 0)
        return error_sys(err, "asking for the volume's size");
    return 0;
}

int volume_look(int volume, int data, const struct volume_reserve *reserve,
                struct volume_state *state, struct error *err)
{
    struct btrfs_ioctl_dev_info_args info;
    struct statvfs inside, below;
    if (fstatvfs(volume, &inside) < 0 || fstatvfs(data, &below) < 0)
        return error_sys(err, "looking at the free space");
    if (device_info(volume, &info, err) < 0)
        return -1;
    state->size = info.total_bytes;
    state->used = (uint64_t)(inside.f_blocks - inside.f_bfree) * inside.f_frsize;
    state->free = (uint64_t)inside.f_bavail * inside.f_frsize;
    state->unallocated =
        info.total_bytes > info.bytes_used ? info.total_bytes - info.bytes_used : 0;
    state->disk_free = (uint64_t)below.f_bavail * below.f_frsize;
    state->reserve = volume_reserve_of(reserve, (uint64_t)below.f_blocks * below.f_frsize);
    state->read_only = inside.f_flag & ST_RDONLY;
    return 0;
}

/* Locked: whoever shrinks cuts the file off where the file system ended a moment ago. */
static int open_file(const char *path, int *ret_fd, struct stat *ret_stat, struct error *err)
{
    *ret_fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd < 0 || flock(*ret_fd, LOCK_EX) < 0 || fstat(*ret_fd, ret_stat) < 0)
        return error_sys(err, "opening %s", path);
    return 0;
}

int volume_file_allocate(int file, uint64_t size, bool *ret_sparse, struct error *err)
{
    struct stat before;
    if (fstat(file, &before) < 0)
        return error_sys(err, "looking at the volume's file");
    if (fallocate(file, 0, 0, (off_t)size) == 0) {
        *ret_sparse = false;
        return 0;
    }
    int failure = errno;
    bool longer = size > (uint64_t)before.st_size;
    if (failure == EOPNOTSUPP || failure == ENOSYS) {
        if (longer && ftruncate(file, (off_t)size) < 0)
            return error_sys(err, "making the volume's file longer");
        *ret_sparse = true;
        return 0;
    }
    if (longer) /* it may have got a part */
        (void)!ftruncate(file, before.st_size);
    errno = failure;
    return error_sys(err, "allocating %" PRIu64 " MiB for the volume", size / MIB);
}

static int set_capacity(const char *path, int device, void *arg)
{
    if (ioctl(device, LOOP_SET_CAPACITY) < 0)
        return error_sys(arg, "changing the size of %s", path);
    return 1;
}

static int resize_device(const char *file, struct error *err)
{
    int r = loopdev_each(file, set_capacity, err, err);
    if (r == 0)
        return error_set(err, ERROR_INTERNAL, "%s has no loop device", file);
    return r < 0 ? -1 : 0;
}

/* size 0: as large as its device. */
static int resize_btrfs(int volume, uint64_t size, struct error *err)
{
    struct btrfs_ioctl_vol_args args = {0};
    if (size == 0)
        snprintf(args.name, sizeof(args.name), "1:max");
    else
        snprintf(args.name, sizeof(args.name), "1:%" PRIu64, size);
    int r = ioctl(volume, BTRFS_IOC_RESIZE, &args);
    if (r < 0)
        return error_sys(err, "changing the volume's size");
    if (r > 0) /* BTRFS_ERROR_DEV_EXCL_RUN_IN_PROGRESS */
        return error_set(err, ERROR_CONFLICT, "the volume's size is being changed already");
    return 0;
}

static int grow(const char *path, int file, int volume, uint64_t size, struct error *err)
{
    bool sparse;
    if (volume_file_allocate(file, size, &sparse, err) < 0 || resize_device(path, err) < 0)
        return -1;
    return resize_btrfs(volume, 0, err);
}

static int shrink(const char *path, int file, int volume, uint64_t size, struct error *err)
{
    struct btrfs_ioctl_dev_info_args info;
    if (resize_btrfs(volume, size, err) < 0 || device_info(volume, &info, err) < 0)
        return -1;
    if (ftruncate(file, (off_t)info.total_bytes) < 0)
        return error_sys(err, "making %s shorter", path);
    return resize_device(path, err);
}

int volume_resize(const char *path, int volume, uint64_t size, struct error *err)
{
    struct btrfs_ioctl_dev_info_args info;
    _cleanup_fd_ int file = -1;
    struct stat st;
    if (open_file(path, &file, &st, err) < 0 || device_info(volume, &info, err) < 0)
        return -1;
    if (size > info.total_bytes)
        return grow(path, file, volume, size > (uint64_t)st.st_size ? size : (uint64_t)st.st_size,
                    err);
    return size < info.total_bytes ? shrink(path, file, volume, size, err) : 0;
}

/* ---- a file with holes ---- */

enum { SIZES = 3 };

/* Sizes to shrink it to: with room for what is to come, what the disk has room for, and what is in
 * it, close together. `taken` is what the file has of the disk. */
static void settled_sizes(const struct volume_state *state, uint64_t taken, uint64_t sizes[SIZES])
{
    uint64_t chunks = state->size - state->unallocated;
    uint64_t most = (taken + volume_growable(state)) / MIB * MIB;
    uint64_t rest = most > chunks ? most - chunks : 0;
    const uint64_t wanted[SIZES] = {chunks + volume_wanted_free(rest), most,
                                    state->used + state->used / 8 + VOLUME_SIZE_MIN / 2};
    for (int i = 0; i < SIZES; i++) {
        uint64_t size = (wanted[i] + MIB - 1) / MIB * MIB;
        sizes[i] = size < VOLUME_SIZE_MIN ? VOLUME_SIZE_MIN : size;
    }
}

/* Does not begin what the disk has no room for: it would be full afterwards. */
static int allocate_missing(int file, bool *ret_sparse, struct error *err)
{
    struct stat st;
    struct statvfs disk;
    if (fstat(file, &st) < 0 || fstatvfs(file, &disk) < 0)
        return error_sys(err, "looking at the volume's file");
    uint64_t size = (uint64_t)st.st_size, taken = (uint64_t)st.st_blocks * BLOCK;
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (taken < size && size - taken > left)
        return error_set(err, ERROR_QUOTA_EXCEEDED,
                         "%" PRIu64 " MiB of the volume's file are not allocated, and the disk has "
                         "%" PRIu64,
                         (size - taken) / MIB, left / MIB);
    return volume_file_allocate(file, size, ret_sparse, err);
}

static int fill_holes(const char *path, int volume, const struct volume_state *state,
                      bool *ret_sparse, struct error *err)
{
    struct stat st;
    _cleanup_fd_ int file = -1;
    uint64_t sizes[SIZES];
    if (open_file(path, &file, &st, err) < 0)
        return -1;
    uint64_t taken = (uint64_t)st.st_blocks * BLOCK, size = state->size;
    bool sparse = taken + MIB < (uint64_t)st.st_size;
    settled_sizes(state, taken, sizes);
    for (int i = 0; i < SIZES; i++) {
        struct error failure;
        if (sparse && sizes[i] < size) {
            log_info("the volume's file has holes: shrinking the volume from %" PRIu64
                     " to %" PRIu64 " MiB, which may take a while",
                     size / MIB, sizes[i] / MIB);
            if (shrink(path, file, volume, sizes[i], &failure) == 0)
                size = sizes[i];
            else
                log_warn("shrinking the volume: %s", failure.message);
        }
        if (allocate_missing(file, ret_sparse, err) == 0)
            return 0;
    }
    return -1;
}

int volume_settle(const char *path, int volume, const struct volume_state *state, bool *ret_sparse,
                  struct error *err)
{
    struct btrfs_ioctl_dev_info_args info;
    struct stat st;
    *ret_sparse = true;
    if (fill_holes(path, volume, state, ret_sparse, err) < 0)
        return -1;
    if (stat(path, &st) < 0)
        return error_sys(err, "looking at %s", path);
    if (device_info(volume, &info, err) < 0)
        return -1;
    /* What a crash while growing has left. */
    if ((uint64_t)st.st_size >= info.total_bytes + MIB)
        return volume_resize(path, volume, (uint64_t)st.st_size, err);
    return 0;
}
