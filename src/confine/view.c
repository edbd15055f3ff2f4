/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The new root is a small tmpfs, which becomes read-only in the end. It is mounted over the old
 * root: absolute paths still lead into the old one until pivot_root, paths relative to the new
 * root's descriptor into the new one. The namespace hears of the machine's unmounts (slave), so
 * that it keeps nobody's disk, and the machine hears nothing of it.
 */

#include "confine/view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "confine/landlock.h"
#include "confine/system_paths.h"

#define READ_ONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static const struct {
    const char *name;
    unsigned major, minor;
} devices[] = {
    {"dev/null", 1, 3},   {"dev/zero", 1, 5},    {"dev/full", 1, 7},
    {"dev/random", 1, 8}, {"dev/urandom", 1, 9},
};

static int make_filesystem(const char *size, const char *inodes, const char *mode,
                           unsigned attributes, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
        fsconfig(context, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0) < 0 ||
        fsconfig(context, FSCONFIG_SET_STRING, "mode", mode, 0) < 0 ||
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return error_sys(err, "making a tmpfs");
    int fd = fsmount(context, FSMOUNT_CLOEXEC, attributes);
    if (fd < 0)
        return error_sys(err, "mounting a tmpfs");
    *ret_fd = fd;
    return 0;
}

/* A folder and those above it; they may be there, in what is mounted read-only. */
static int make_folder(int root, const char *path, struct error *err)
{
    char part[PATH_MAX];
    snprintf(part, sizeof(part), "%s/", path);
    for (char *slash = strchr(part, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(root, part, 0755) < 0 && errno != EEXIST && errno != EROFS)
            return error_sys(err, "making /%s", part);
        *slash = '/';
    }
    return 0;
}

static int attach(int root, int tree, const char *path, struct error *err)
{
    if (make_folder(root, path, err) < 0)
        return -1;
    if (move_mount(tree, "", root, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return error_sys(err, "mounting /%s", path);
    return 0;
}

/* What cannot be had is as if it were not there: a network's file system that is away, say. */
static int bind_read_only(int root, const char *path, struct error *err)
{
    const struct mount_attr attr = {.attr_set = READ_ONLY};
    char target[PATH_MAX];
    ssize_t len = readlink(path, target, sizeof(target) - 1);
    if (len >= 0) {
        target[len] = '\0';
        return symlinkat(target, root, path + 1) < 0 ? error_sys(err, "making %s", path) : 0;
    }
    _cleanup_fd_ int tree =
        open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0)
        return 0;
    if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, (struct mount_attr *)&attr,
                      sizeof(attr)) < 0)
        return error_sys(err, "making %s read-only", path);
    return attach(root, tree, path + 1, err);
}

static int bind_at(int root, const char *path, unsigned flags, uint64_t attributes,
                   struct error *err)
{
    struct mount_attr attr = {.attr_set = attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          MOUNT_ATTR_NOEXEC};
    _cleanup_fd_ int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);
    if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH | flags, &attr, sizeof(attr)) < 0)
        return error_sys(err, "binding %s", path);
    return attach(root, tree, path + 1, err);
}

static int bind_folder(int root, const struct view *view, struct error *err)
{
    char path[PATH_MAX];
    if (bind_at(root, view->folder, 0, MOUNT_ATTR_RDONLY, err) < 0)
        return -1;
    for (const char *const *part = view->parts; *part != NULL; part++) {
        snprintf(path, sizeof(path), "%s/%s", view->folder, *part);
        if (bind_at(root, path, AT_RECURSIVE, 0, err) < 0)
            return -1;
    }
    return 0;
}

static int make_devices(int root, struct error *err)
{
    if (make_folder(root, "dev", err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (mknodat(root, devices[i].name, S_IFCHR | 0666,
                    makedev(devices[i].major, devices[i].minor)) < 0 ||
            fchmodat(root, devices[i].name, 0666, 0) < 0)
            return error_sys(err, "making /%s", devices[i].name);
    return 0;
}

/* SQLite and libraries put what does not fit into their memory here. */
static int make_scratch(int root, struct error *err)
{
    _cleanup_fd_ int tmp = -1;
    if (make_filesystem("256m", "1024", "1777",
                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &tmp, err) < 0)
        return -1;
    return attach(root, tmp, "tmp", err);
}

static int fill(int root, const struct view *view, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(system_paths); i++)
        if (bind_read_only(root, system_paths[i], err) < 0)
            return -1;
    /* /proc without the mounts below it, which expose more of the kernel. cellad sets oom_score_adj
     * of its children there; it may write only where Landlock protects other processes' memory. */
    bool writable = view->folder != NULL && landlock_abi() >= LANDLOCK_ABI_MIN;
    if (bind_at(root, "/proc", 0, writable ? 0 : MOUNT_ATTR_RDONLY, err) < 0 ||
        make_devices(root, err) < 0)
        return -1;
    if (view->folder != NULL && (make_scratch(root, err) < 0 || bind_folder(root, view, err) < 0))
        return -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    if (mount_setattr(root, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_sys(err, "making the root read-only");
    return 0;
}

int view_enter(const struct view *view, struct error *err)
{
    _cleanup_fd_ int root = -1;
    if (unshare(CLONE_NEWNS) < 0)
        return error_sys(err, "making a mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return error_sys(err, "making the mounts slaves");
    mode_t mask = umask(0);
    int rc =
        make_filesystem("64k", "256", "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &root, err);
    if (rc == 0 && move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        rc = error_sys(err, "mounting the new root");
    if (rc == 0)
        rc = fill(root, view, err);
    umask(mask);
    if (rc < 0)
        return -1;
    /* The old root ends up on top of the new one, where it is taken off at once. */
    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return error_sys(err, "changing the root");
    return 0;
}
