/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Most machines have no btrfs below their data folder; a loop file gives it to them. The file is
 * made under another name and renamed when it holds a file system, so a crash leaves nothing that
 * looks like a volume and is none.
 */

#include "warden/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/loopdev.h"
#include "warden/volume_resize.h"

enum { UNMOUNT_TRIES = 100, UNMOUNT_WAIT_MS = 20 };

static const char *find_mkfs(void)
{
    static const char *const places[] = {"/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs",
                                         "/usr/bin/mkfs.btrfs"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

static void exec_mkfs(const char *program, const char *file)
{
    /* One copy of the metadata: the file below is on one disk anyway. Nothing to discard yet. */
    const char *const argv[] = {"mkfs.btrfs", "-q",     "--nodiscard", "--metadata", "single",
                                "--data",     "single", file,          NULL};
    const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC); /* it talks even when asked to be quiet */
    if (null >= 0)
        dup2(null, STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
    execve(program, (char *const *)argv, (char *const *)envp);
    _exit(127);
}

static int run_mkfs(const char *file, struct error *err)
{
    const char *program = find_mkfs();
    if (program == NULL)
        return error_set(err, ERROR_UNAVAILABLE, "mkfs.btrfs is not installed (btrfs-progs)");
    pid_t pid = fork();
    if (pid < 0)
        return error_sys(err, "starting mkfs.btrfs");
    if (pid == 0)
        exec_mkfs(program, file);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_sys(err, "waiting for mkfs.btrfs");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(err, ERROR_UNAVAILABLE, "mkfs.btrfs failed on %s", file);
    return 0;
}

/* Larger than it has to be, where the disk has much room: the first sandbox may write at once. */
static int make_allocated(const char *path, uint64_t max, struct error *err)
{
    bool sparse;
    struct statvfs disk;
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fstatvfs(fd, &disk) < 0)
        return error_sys(err, "making %s", path);
    uint64_t size = volume_first_size((uint64_t)disk.f_bavail * disk.f_frsize, max);
    return volume_file_allocate(fd, size, &sparse, err);
}

static int make_file(const char *file, uint64_t max, struct error *err)
{
    char temp[PATH_MAX + 8];
    snprintf(temp, sizeof(temp), "%s.new", file);
    if (max != 0 && max < VOLUME_SIZE_MIN)
        return error_set(err, ERROR_QUOTA_EXCEEDED, "a volume of less than %d MiB is of no use",
                         (int)(VOLUME_SIZE_MIN >> 20));
    if (make_allocated(temp, max, err) < 0 || run_mkfs(temp, err) < 0) {
        unlink(temp);
        return -1;
    }
    if (rename(temp, file) < 0) {
        error_sys(err, "renaming %s", temp);
        unlink(temp);
        return -1;
    }
    return 0;
}

struct found {
    char path[LOOP_PATH_SIZE];
    int fd;
    struct error *err;
};

static int take_first(const char *path, int fd, void *arg)
{
    struct found *found = arg;
    snprintf(found->path, sizeof(found->path), "%s", path);
    found->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return found->fd < 0 ? error_sys(found->err, "holding %s", path) : 1;
}

/* Flags of the mount itself, not of the file system: through the overlays setuid programs still
 * have to work. */
static int mount_device(const char *device, const char *target, struct error *err)
{
    if (mount(device, target, "btrfs", MS_NOATIME | MS_NOSUID | MS_NODEV | MS_NOEXEC, "nodiscard") <
        0) {
        enum error_code code = errno == ENODEV ? ERROR_UNAVAILABLE : ERROR_INTERNAL;
        return error_sys_as(err, code, "mounting %s on %s", device, target);
    }
    return 0;
}

static void refuse_discard(const char *device)
{
    struct error err;
    if (loopdev_refuse_discard(device, &err) < 0)
        log_warn("%s: `fstrim` must not be run on the volume", err.message);
}

int volume_mount(const char *file, const char *target, uint64_t max, struct error *err)
{
    struct found found = {.fd = -1, .err = err};
    if (access(file, F_OK) < 0 && make_file(file, max, err) < 0)
        return -1;
    /* Attached but not mounted: another mount namespace, or somebody's hand. Never a second one.
     * Who has it may let go at any moment, and the device be given to another file: so it is held.
     */
    int r = loopdev_each(file, take_first, &found, err);
    _cleanup_fd_ int device = found.fd; /* until the mount holds it */
    if (r < 0)
        return -1;
    if (r == 0 && loopdev_attach(file, found.path, &device, err) < 0)
        return -1;
    refuse_discard(found.path);
    return mount_device(found.path, target, err);
}

static int refuse_each(const char *path, int fd, void *arg)
{
    refuse_discard(path);
    return 0;
}

int volume_stop_discard(const char *file, struct error *err)
{
    return loopdev_each(file, refuse_each, NULL, err);
}

int volume_unmount(const char *target, struct error *err)
{
    const struct timespec wait = {.tv_nsec = UNMOUNT_WAIT_MS * 1000L * 1000L};
    for (int i = 0; i < UNMOUNT_TRIES; i++) {
        if (umount2(target, UMOUNT_NOFOLLOW) == 0 || errno == EINVAL || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            return error_sys(err, "unmounting %s", target);
        nanosleep(&wait, NULL);
    }
    if (umount2(target, UMOUNT_NOFOLLOW | MNT_DETACH) < 0)
        return error_sys(err, "unmounting %s", target);
    return 0;
}
