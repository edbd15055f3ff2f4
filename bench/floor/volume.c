/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writable layers' storage, by ioctl as the product does it: the command-line tool costs
 * six milliseconds where the ioctl costs a tenth of one, and a floor must not be padded.
 */
#include "floor/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
    LOOP_TRIES = 16,
    QUOTA_CTL_ENABLE_SIMPLE = 4, /* not in Debian 12's headers */
};

static const off_t volume_size = 16ll << 30;

static int make_file_system(const char *image, struct error *err)
{
    pid_t pid = fork();
    if (pid < 0)
        return error_sys(err, "fork");
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDOUT_FILENO);
        execlp("mkfs.btrfs", "mkfs.btrfs", "-q", image, (char *)NULL);
        _exit(127);
    }
    int status;
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        return error_set(err, ERROR_UNAVAILABLE, "mkfs.btrfs failed (package btrfs-progs)");
    return 0;
}

/* Returns an fd of the device, which has to stay open until the mount holds it. */
static int attach_loop(const char *image, char *ret_device, size_t size, int *ret_fd,
                       struct error *err)
{
    _cleanup_fd_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    _cleanup_fd_ int file = open(image, O_RDWR | O_CLOEXEC);
    if (control < 0 || file < 0)
        return error_sys(err, "open loop control and volume file");

    struct loop_config config = {
        .fd = file,
        .block_size = 4096,
        .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
    };
    for (int try = 0; try < LOOP_TRIES; try++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            return error_sys(err, "get a free loop device");
        snprintf(ret_device, size, "/dev/loop%d", number);
        _cleanup_fd_ int device = open(ret_device, O_RDWR | O_CLOEXEC);
        if (device < 0)
            return error_sys(err, "open %s", ret_device);
        if (ioctl(device, LOOP_CONFIGURE, &config) == 0) {
            *ret_fd = steal_fd(&device);
            return 0;
        }
        if (errno == EINVAL) /* a backing file system without direct I/O */
            config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
        else if (errno != EBUSY) /* somebody else was faster: the next one */
            return error_sys(err, "configure %s", ret_device);
    }
    return error_set(err, ERROR_UNAVAILABLE, "no free loop device");
}

static int enable_quota(int volume_fd, struct error *err)
{
    struct btrfs_ioctl_quota_ctl_args simple = {.cmd = QUOTA_CTL_ENABLE_SIMPLE};
    if (ioctl(volume_fd, BTRFS_IOC_QUOTA_CTL, &simple) == 0)
        return 0;
    struct btrfs_ioctl_quota_ctl_args full = {.cmd = BTRFS_QUOTA_CTL_ENABLE};
    if (ioctl(volume_fd, BTRFS_IOC_QUOTA_CTL, &full) < 0)
        return error_sys(err, "enable quotas");
    return 0;
}

int volume_open(const char *dir, int *ret_fd, struct error *err)
{
    char image[300], mount_point[300], device[32];
    snprintf(image, sizeof(image), "%s/volume.img", dir);
    snprintf(mount_point, sizeof(mount_point), "%s/volume", dir);

    _cleanup_fd_ int file = open(image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, volume_size) < 0)
        return error_sys(err, "make %s", image);
    if (make_file_system(image, err) < 0)
        return -1;
    _cleanup_fd_ int loop = -1;
    if (attach_loop(image, device, sizeof(device), &loop, err) < 0)
        return -1;
    if (mkdir(mount_point, 0700) < 0)
        return error_sys(err, "mkdir %s", mount_point);
    if (mount(device, mount_point, "btrfs", MS_NOATIME, "discard=async") < 0)
        return error_sys(err, "mount %s", device);
    if (mount(NULL, mount_point, NULL,
              MS_REMOUNT | MS_BIND | MS_NOATIME | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return error_sys(err, "remount %s", mount_point);

    _cleanup_fd_ int fd = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open %s", mount_point);
    if (enable_quota(fd, err) < 0)
        return -1;
    *ret_fd = steal_fd(&fd);
    return 0;
}

int subvolume_create(int volume_fd, const char *name, uint64_t limit, int *ret_fd,
                     struct error *err)
{
    struct btrfs_ioctl_vol_args_v2 args = {0};
    snprintf(args.name, sizeof(args.name), "%s", name);
    if (ioctl(volume_fd, BTRFS_IOC_SUBVOL_CREATE_V2, &args) < 0)
        return error_sys(err, "create subvolume %s", name);
    _cleanup_fd_ int fd = openat(volume_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open subvolume %s", name);
    struct btrfs_ioctl_qgroup_limit_args quota = {
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = limit}};
    if (ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &quota) < 0)
        return error_sys(err, "limit subvolume %s", name);
    *ret_fd = steal_fd(&fd);
    return 0;
}

int subvolume_destroy(int volume_fd, const char *name, struct error *err)
{
    struct btrfs_ioctl_vol_args_v2 args = {0};
    snprintf(args.name, sizeof(args.name), "%s", name);
    if (ioctl(volume_fd, BTRFS_IOC_SNAP_DESTROY_V2, &args) < 0)
        return error_sys(err, "destroy subvolume %s", name);
    return 0;
}
