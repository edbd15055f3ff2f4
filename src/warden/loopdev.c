/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop device behind the volume. AUTOCLEAR lets the kernel take the device away with the
 * mount, so that even a killed warden leaves none behind once its volume is unmounted.
 */

#include "warden/loopdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"

enum { ATTACH_TRIES = 64, BLOCK_SIZE_BYTES = 4096 };

static int configure(int device, int file)
{
    struct loop_config config = {
        .fd = (unsigned)file,
        .block_size = BLOCK_SIZE_BYTES,
        .info = {.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO},
    };
    if (ioctl(device, LOOP_CONFIGURE, &config) == 0)
        return 0;
    if (errno != EINVAL)
        return -1;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR; /* a file system without direct I/O */
    return ioctl(device, LOOP_CONFIGURE, &config);
}

int loopdev_attach(const char *file, char ret_path[LOOP_PATH_SIZE], int *ret_fd, struct error *err)
{
    _cleanup_fd_ int backing = open(file, O_RDWR | O_CLOEXEC);
    if (backing < 0)
        return error_sys(err, "opening %s", file);
    _cleanup_fd_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "opening /dev/loop-control");
    for (int i = 0; i < ATTACH_TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            return error_sys_as(err, ERROR_UNAVAILABLE, "looking for a free loop device");
        char path[LOOP_PATH_SIZE];
        snprintf(path, sizeof(path), "/dev/loop%d", number);
        _cleanup_fd_ int device = open(path, O_RDWR | O_CLOEXEC);
        if (device < 0)
            return error_sys_as(err, ERROR_UNAVAILABLE, "opening %s", path);
        if (configure(device, backing) == 0) {
            memcpy(ret_path, path, sizeof(path));
            *ret_fd = steal_fd(&device);
            return 0;
        }
        if (errno != EBUSY) /* somebody else was faster */
            return error_sys_as(err, ERROR_UNAVAILABLE, "attaching %s to %s", file, path);
    }
    return error_set(err, ERROR_UNAVAILABLE, "no loop device could be had for %s", file);
}

struct search {
    struct stat file;
    loopdev_fn fn;
    void *arg;
};

static int visit(int dirfd, const char *name, void *arg)
{
    const struct search *search = arg;
    char path[LOOP_PATH_SIZE];
    struct loop_info64 info;
    if (strncmp(name, "loop", 4) != 0 ||
        snprintf(path, sizeof(path), "/dev/%s", name) >= (int)sizeof(path))
        return 0;
    _cleanup_fd_ int device = open(path, O_RDONLY | O_CLOEXEC);
    if (device < 0 || ioctl(device, LOOP_GET_STATUS64, &info) < 0)
        return 0;
    if (info.lo_device != search->file.st_dev || info.lo_inode != search->file.st_ino)
        return 0;
    return search->fn(path, device, search->arg);
}

int loopdev_each(const char *file, loopdev_fn fn, void *arg, struct error *err)
{
    struct search search = {.fn = fn, .arg = arg};
    if (stat(file, &search.file) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "looking for %s", file);
    return dir_each(AT_FDCWD, "/sys/block", visit, &search, err);
}

int loopdev_refuse_discard(const char *path, struct error *err)
{
    char knob[LOOP_PATH_SIZE + 48];
    const char *name = strrchr(path, '/');
    snprintf(knob, sizeof(knob), "/sys/block/%s/queue/discard_max_bytes",
             name == NULL ? path : name + 1);
    return file_write_at(AT_FDCWD, knob, "0", err);
}
