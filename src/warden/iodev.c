/* SPDX-License-Identifier: Apache-2.0 */

/* From a path to the disks below it: btrfs has a device number of its own, and is asked for the
 * devices that it lies on; a partition's disk is found in sysfs. */

#include "warden/iodev.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/btrfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/files.h"

enum { BTRFS_DEVICES_MAX = 16, SYS_PATH_MAX = 64, NUMBER_MAX = 32 };

static bool read_number(const char *path, dev_t *ret_dev)
{
    char text[NUMBER_MAX];
    unsigned major, minor;
    if (file_read_at(AT_FDCWD, path, text, sizeof(text), NULL) < 0 ||
        sscanf(text, "%u:%u", &major, &minor) != 2)
        return false;
    *ret_dev = makedev(major, minor);
    return true;
}

static void add(struct io_devices *devices, dev_t dev)
{
    char path[SYS_PATH_MAX];
    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(dev), minor(dev));
    if (access(path, F_OK) == 0) {
        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(dev), minor(dev));
        if (!read_number(path, &dev))
            return;
    }
    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(dev), minor(dev));
    if (access(path, F_OK) < 0)
        return;
    for (size_t i = 0; i < devices->count; i++)
        if (devices->of[i] == dev)
            return;
    if (devices->count < IO_DEVICES_MAX)
        devices->of[devices->count++] = dev;
}

static void add_btrfs(struct io_devices *devices, const char *path)
{
    struct btrfs_ioctl_fs_info_args fs = {0};
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, BTRFS_IOC_FS_INFO, &fs) < 0)
        return;
    for (uint64_t id = 0; id <= fs.max_id && id < BTRFS_DEVICES_MAX; id++) {
        struct btrfs_ioctl_dev_info_args device = {.devid = id};
        struct stat st;
        if (ioctl(fd, BTRFS_IOC_DEV_INFO, &device) == 0 &&
            stat((const char *)device.path, &st) == 0 && S_ISBLK(st.st_mode))
            add(devices, st.st_rdev);
    }
}

void io_devices_add(struct io_devices *devices, const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return;
    if (major(st.st_dev) == 0)
        add_btrfs(devices, path);
    else
        add(devices, st.st_dev);
}
