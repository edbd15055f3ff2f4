/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why a namespace: what the warden mounts for itself must not show on the machine, and must not
 * stay when it is killed. Mounts of the machine keep arriving and leaving (slave propagation), so
 * that the warden pins nobody's disk; where the machine shares no mounts, see drop_strangers().
 *
 * Why a template: making device nodes in a user namespace is not allowed; cloning a mount that
 * has them is, and takes one call. It is shared by all sandboxes, and read-only for that reason.
 *
 * Why one /sys for all: the kernel looks through every sysfs that there is before it makes another,
 * and keeps something for each file system in each memory cgroup. What differs between sandboxes is
 * their network interfaces, so theirs shows an empty network: lo, and nothing of the machine's.
 */

#include "warden/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/slice.h"
#include "warden/files.h"
#include "warden/mountinfo.h"

enum { STRANGERS_MAX = 256 * 1024 };

static const struct {
    const char *path;
    unsigned major, minor;
} dev_nodes[] = {
    {"dev/null", 1, 3},   {"dev/zero", 1, 5},    {"dev/full", 1, 7},
    {"dev/random", 1, 8}, {"dev/urandom", 1, 9}, {"dev/tty", 5, 0},
};

static const struct {
    const char *path, *target;
} dev_links[] = {
    {"dev/fd", "/proc/self/fd"},       {"dev/stdin", "/proc/self/fd/0"},
    {"dev/stdout", "/proc/self/fd/1"}, {"dev/stderr", "/proc/self/fd/2"},
    {"dev/ptmx", "pts/ptmx"},          {"dev/core", "/proc/kcore"},
};

static const char *const stage_dirs[] = {
    "dev", "dev/pts", "dev/shm", "dev/mqueue", "sys", "slot0", "slot1", "slot2", "slot3",
};

static int fill(int fd, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(stage_dirs); i++)
        if (dir_make_at(fd, stage_dirs[i], 0755, err) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(dev_nodes); i++) {
        const char *path = dev_nodes[i].path;
        dev_t device = makedev(dev_nodes[i].major, dev_nodes[i].minor);
        if (mknodat(fd, path, S_IFCHR | 0666, device) < 0 || fchmodat(fd, path, 0666, 0) < 0)
            return error_sys(err, "making %s", path);
    }
    for (size_t i = 0; i < ARRAY_LEN(dev_links); i++)
        if (symlinkat(dev_links[i].target, fd, dev_links[i].path) < 0)
            return error_sys(err, "making %s", dev_links[i].path);
    return 0;
}

static int mount_empty_network(const char *path, int *ret_network, struct error *err)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (unshare(CLONE_NEWNET) < 0)
        return error_sys(err, "making a network namespace");
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return error_sys(err, "bringing lo up");
    if (mount("sysfs", path, "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return error_sys(err, "mounting sysfs");
    *ret_network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (*ret_network < 0)
        return error_sys(err, "opening the empty network");
    return 0;
}

static int make_sys(struct stage *stage, const char *at, struct error *err)
{
    char path[PATH_MAX];
    _cleanup_fd_ int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        return error_sys(err, "opening the network namespace");
    snprintf(path, sizeof(path), "%s/sys", at);
    int r = mount_empty_network(path, &stage->network, err);
    if (setns(home, CLONE_NEWNET) < 0)
        return error_sys(err, "coming back to the machine's network");
    return r;
}

/* Whether `path` is `top` or below it. */
static bool is_below(const char *path, const char *top)
{
    size_t len = strlen(top);
    return strcmp(top, "/") == 0 ||
           (strncmp(path, top, len) == 0 && (path[len] == '/' || path[len] == '\0'));
}

struct strangers {
    const char *data;
    struct buf targets; /* a list of strings */
};

/* What the warden and the first processes of sandboxes need: the way to /usr and to the data
 * folder, the kernel's own file systems, and /run, where the id ranges are. */
static bool is_needed(const struct mount_line *mount, const char *data)
{
    const char *target = mount->target;
    static const char *const needed[] = {"/proc", "/sys", "/dev", "/run"};
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (strcmp(target, needed[i]) == 0)
            return true;
    return is_below("/usr", target) || is_below(data, target) || is_below(target, data) ||
           is_below(target, "/sys/fs/cgroup") || strncmp(mount->fstype, "cgroup", 6) == 0;
}

static int note_stranger(const struct mount_line *mount, void *arg)
{
    struct strangers *strangers = arg;
    if (!is_needed(mount, strangers->data))
        buf_add(&strangers->targets, mount->target, strlen(mount->target) + 1);
    return 0;
}

/* Where the machine's mounts are private, a slave hears nothing of an unmount: this namespace would
 * keep other people's disks, volumes of other servers among them, for as long as the warden lives.
 * So it lets go of everything else at once; and each sandbox starts with a copy of fewer mounts. */
static int drop_strangers(const char *data, struct error *err)
{
    struct strangers strangers = {.data = data, .targets = BUF_INIT(STRANGERS_MAX)};
    int r = mountinfo_each(note_stranger, &strangers, err);
    struct slice list = {strangers.targets.data, strangers.targets.len};
    strv_each (target, list)
        umount2(target, MNT_DETACH | UMOUNT_NOFOLLOW);
    buf_release(&strangers.targets);
    return r;
}

int stage_enter(struct stage *stage, const char *data, const char *path, struct error *err)
{
    *stage = (struct stage){.outside = -1, .fd = -1, .network = -1};
    stage->outside = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (stage->outside < 0)
        return error_sys(err, "opening the mount namespace");
    if (unshare(CLONE_NEWNS) < 0)
        return error_sys(err, "making a mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return error_sys(err, "making the mounts slaves");
    if (drop_strangers(data, err) < 0)
        return -1;
    if (dir_make_at(AT_FDCWD, path, 0700, err) < 0)
        return -1;
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0700,size=256k") < 0)
        return error_sys(err, "mounting the stage on %s", path);
    if (dir_open_at(AT_FDCWD, path, &stage->fd, err) < 0)
        return -1;
    return fill(stage->fd, err) < 0 ? -1 : make_sys(stage, path, err);
}

int stage_leave(struct stage *stage, struct error *err)
{
    cleanup_fd(&stage->fd);
    cleanup_fd(&stage->network);
    stage->fd = stage->network = -1;
    if (stage->outside < 0)
        return 0;
    if (setns(stage->outside, CLONE_NEWNS) < 0)
        return error_sys(err, "leaving the mount namespace");
    cleanup_fd(&stage->outside);
    stage->outside = -1;
    return 0;
}

static void slot_name(int slot, char out[16])
{
    snprintf(out, 16, "slot%d", slot);
}

int stage_attach(const struct stage *stage, int slot, int tree, struct error *err)
{
    char name[16];
    slot_name(slot, name);
    if (move_mount(tree, "", stage->fd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return error_sys(err, "attaching a layer");
    return 0;
}

void stage_detach(const struct stage *stage, int slot)
{
    char name[16], path[64];
    slot_name(slot, name);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", stage->fd, name);
    umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
}
