/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is mounted where in a sandbox, as data.
 *
 * The root may have been prepared by what ran in it before: a target can be missing, or a symlink
 * somewhere else. So targets are looked up below the new root without following any link, and made
 * again as directories if they are not. proc is mounted while the machine's is still in this
 * namespace: the kernel wants to see that nothing is shown that was hidden.
 *
 * Each file system costs every sandbox something (stage.c says why), so the folder that hides
 * others is one that there is already: in the shared /dev, below where a file system of the
 * sandbox's own will be.
 */

#include "warden/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

enum row_kind {
    ROW_NEW,       /* a file system of its own */
    ROW_WRITE,     /* a knob of one that is mounted by then: `fstype` is what to write */
    ROW_TRY,       /* the same, where the kernel lets the sandbox's root set it */
    ROW_READ_ONLY, /* a part of one, bound on itself */
    ROW_MASK,      /* hidden: by /dev/null, or by an empty folder */
};

enum row_when { ALWAYS, IF_READ_ONLY_ROOT };

#define PLAIN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

struct option {
    const char *key, *value; /* a value that begins with @ stands for one of the plan */
};

static const struct row {
    enum row_kind kind;
    const char *target;
    const char *fstype;
    unsigned attributes;
    struct option options[5];
    enum row_when when;
} rows[] = {
    {ROW_NEW, "proc", "proc", PLAIN},
    /* No user namespaces below this one, however they are asked for: in one of its own a process
     * would have every capability. */
    {ROW_WRITE, "proc/sys/user/max_user_namespaces", "0"},
    /* System V objects outlive the processes that made them, and so would fill the memory for good:
     * as much as /dev/shm, and as many as there were before the kernel stopped to count. */
    {ROW_TRY, "proc/sys/kernel/shmall", "@shm-pages"},
    {ROW_TRY, "proc/sys/kernel/msgmni", "256"},
    {ROW_TRY, "proc/sys/kernel/sem", "250 32000 500 128"},
    {ROW_NEW,
     "dev/pts",
     "devpts",
     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
     /* The kernel has a few thousand for all of the machine: one sandbox does not get them all. */
     {{"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", "5"}, {"max", "256"}}},
    /* A file without a byte takes memory too, that of the sandbox, and nobody can be killed for it.
     */
    {ROW_NEW,
     "dev/shm",
     "tmpfs",
     PLAIN,
     {{"mode", "1777"}, {"size", "@shm"}, {"nr_inodes", "@shm-pages"}}},
    {ROW_NEW, "dev/mqueue", "mqueue", PLAIN},
    {ROW_NEW,
     "tmp",
     "tmpfs",
     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
     {{"mode", "1777"}, {"size", "@scratch"}, {"nr_inodes", "@scratch-pages"}},
     IF_READ_ONLY_ROOT},
    {ROW_NEW,
     "workspace",
     "tmpfs",
     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
     {{"mode", "1777"}, {"size", "@scratch"}, {"nr_inodes", "@scratch-pages"}},
     IF_READ_ONLY_ROOT},

    /* What the kernel shows of the machine: the lists that Docker has. */
    {ROW_READ_ONLY, "proc/bus"},
    {ROW_READ_ONLY, "proc/fs"},
    {ROW_READ_ONLY, "proc/irq"},
    /* Who writes there has the kernel watch the load of the whole machine. */
    {ROW_READ_ONLY, "proc/pressure"},
    {ROW_READ_ONLY, "proc/sys"},
    {ROW_READ_ONLY, "proc/sysrq-trigger"},
    {ROW_MASK, "proc/acpi"},
    {ROW_MASK, "proc/asound"},
    {ROW_MASK, "proc/interrupts"},
    {ROW_MASK, "proc/kcore"},
    {ROW_MASK, "proc/keys"},
    {ROW_MASK, "proc/latency_stats"},
    {ROW_MASK, "proc/sched_debug"},
    {ROW_MASK, "proc/scsi"},
    {ROW_MASK, "proc/timer_list"},
    {ROW_MASK, "proc/timer_stats"},
    /* Loop devices tell the paths of their files, device mapper the names of its volumes. */
    {ROW_MASK, "sys/devices/virtual/block"},
    {ROW_MASK, "sys/devices/virtual/powercap"},
    {ROW_MASK, "sys/firmware"},
};

_Static_assert(ARRAY_LEN(rows) <= MOUNTS_MAX, "struct mounts has room for every row");

struct work {
    const struct plan *plan;
    const struct mounts *mounts;
    int root;  /* the sandbox's */
    int empty; /* an empty read-only folder */
};

static int find_target(const struct work *work, const char *path, int *ret_fd)
{
    const struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, work->root, path, &how, sizeof(how));
    if (fd < 0)
        return -1;
    *ret_fd = fd;
    return 0;
}

/* For a target at the top of the root, which belongs to the sandbox. */
static int make_target(const struct work *work, const char *path, int *ret_fd, struct error *err)
{
    struct stat st;
    if (fstatat(work->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
        unlinkat(work->root, path, 0) < 0)
        return error_sys(err, "replacing /%s", path);
    if (mkdirat(work->root, path, 0755) < 0 && errno != EEXIST)
        return error_sys(err, "making /%s", path);
    if (find_target(work, path, ret_fd) < 0)
        return error_sys(err, "opening /%s", path);
    return 0;
}

static int attach(const struct work *work, int mount, const char *path, struct error *err)
{
    _cleanup_fd_ int target = -1;
    if (strchr(path, '/') == NULL) {
        if (make_target(work, path, &target, err) < 0)
            return -1;
    } else if (find_target(work, path, &target) < 0) {
        return error_sys(err, "opening /%s", path);
    }
    if (move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return error_sys(err, "mounting on /%s", path);
    return 0;
}

enum { PAGE = 4096, PAGES_MIN = 64 };

static const char *option_value(const struct plan *plan, const char *value, char *out, size_t size)
{
    const struct {
        const char *name;
        uint64_t number;
    } known[] = {
        {"@shm", plan->shm_bytes},
        {"@shm-pages", plan->shm_bytes / PAGE + PAGES_MIN},
        {"@scratch", plan->scratch_bytes},
        {"@scratch-pages", plan->scratch_bytes / PAGE + PAGES_MIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(value, known[i].name) == 0) {
            snprintf(out, size, "%" PRIu64, known[i].number);
            return out;
        }
    return value;
}

static int make_filesystem(const struct plan *plan, const struct row *row, int *ret_fd,
                           struct error *err)
{
    _cleanup_fd_ int context = fsopen(row->fstype, FSOPEN_CLOEXEC);
    if (context < 0)
        return error_sys(err, "opening %s", row->fstype);
    if (fsconfig(context, FSCONFIG_SET_STRING, "source", row->fstype, 0) < 0)
        return error_sys(err, "naming %s", row->fstype);
    for (size_t i = 0; i < ARRAY_LEN(row->options) && row->options[i].key != NULL; i++) {
        char text[24];
        const char *value = option_value(plan, row->options[i].value, text, sizeof(text));
        if (fsconfig(context, FSCONFIG_SET_STRING, row->options[i].key, value, 0) < 0)
            return error_sys(err, "setting %s of %s", row->options[i].key, row->fstype);
    }
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return error_sys(err, "making %s", row->fstype);
    int fd = fsmount(context, FSMOUNT_CLOEXEC, row->attributes);
    if (fd < 0)
        return error_sys(err, "mounting %s", row->fstype);
    *ret_fd = fd;
    return 0;
}

static int write_knob(const struct work *work, const struct row *row, struct error *err)
{
    const struct open_how how = {
        .flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    char text[24];
    const char *value = option_value(work->plan, row->fstype, text, sizeof(text));
    _cleanup_fd_ int fd = (int)syscall(SYS_openat2, work->root, row->target, &how, sizeof(how));
    if ((fd < 0 || write(fd, value, strlen(value)) < 0) && row->kind != ROW_TRY)
        return error_sys(err, "writing /%s", row->target);
    return 0;
}

static int bind_on(int source, int target, unsigned attributes)
{
    _cleanup_fd_ int tree =
        open_tree(source, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return -1;
    struct mount_attr attr = {.attr_set = attributes};
    if (attributes != 0 && mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return -1;
    return move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* Hidden files and folders are the kernel's: not every one has all of them. */
static int mount_over(const struct work *work, const struct row *row, struct error *err)
{
    _cleanup_fd_ int target = -1, null = -1;
    struct stat st;
    if (find_target(work, row->target, &target) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "opening /%s", row->target);
    if (row->kind == ROW_READ_ONLY) {
        if (bind_on(target, target, PLAIN | MOUNT_ATTR_RDONLY) < 0)
            return error_sys(err, "making /%s read-only", row->target);
        return 0;
    }
    if (fstat(target, &st) < 0)
        return error_sys(err, "looking at /%s", row->target);
    if (!S_ISDIR(st.st_mode) && find_target(work, "dev/null", &null) < 0)
        return error_sys(err, "opening /dev/null");
    unsigned attributes = null < 0 ? PLAIN | MOUNT_ATTR_RDONLY : 0;
    if (bind_on(null < 0 ? work->empty : null, target, attributes) < 0)
        return error_sys(err, "hiding /%s", row->target);
    return 0;
}

static int change_root(int root, struct error *err)
{
    if (fchdir(root) < 0)
        return error_sys(err, "entering the new root");
    /* The old root ends up on top of the new one, where it is taken off at once. */
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return error_sys(err, "changing the root");
    if (umount2(".", MNT_DETACH) < 0)
        return error_sys(err, "leaving the machine's mounts");
    if (chdir("/") < 0)
        return error_sys(err, "entering the new root");
    return 0;
}

static bool is_wanted(const struct row *row, const struct plan *plan)
{
    return row->when == ALWAYS || (plan->flags & PLAN_READ_ONLY_ROOT) != 0;
}

static int carry_out(const struct work *work, size_t index, struct error *err)
{
    const struct row *row = &rows[index];
    switch (row->kind) {
    case ROW_NEW:
        return attach(work, work->mounts->made[index], row->target, err);
    case ROW_WRITE:
    case ROW_TRY:
        return write_knob(work, row, err);
    case ROW_READ_ONLY:
    case ROW_MASK:
        return mount_over(work, row, err);
    }
    return error_set(err, ERROR_INTERNAL, "no such kind of mount");
}

int mounts_prepare(const struct plan *plan, struct mounts *ret_mounts, struct error *err)
{
    for (size_t i = 0; i < MOUNTS_MAX; i++)
        ret_mounts->made[i] = -1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].kind == ROW_NEW && is_wanted(&rows[i], plan) &&
            make_filesystem(plan, &rows[i], &ret_mounts->made[i], err) < 0)
            return -1; /* the process ends: nobody has to close the others */
    return 0;
}

int mounts_enter(const struct plan *plan, const struct layers *layers, const struct mounts *mounts,
                 struct error *err)
{
    struct work work = {.plan = plan, .mounts = mounts, .root = layers->root, .empty = -1};
    if (move_mount(layers->root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return error_sys(err, "mounting the root");
    if (attach(&work, layers->usr, "usr", err) < 0 || attach(&work, layers->dev, "dev", err) < 0 ||
        attach(&work, layers->sys, "sys", err) < 0)
        return -1;
    if (find_target(&work, "dev/mqueue", &work.empty) < 0)
        return error_sys(err, "opening an empty folder");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (is_wanted(&rows[i], plan) && carry_out(&work, i, err) < 0)
            return -1;
    int r = change_root(layers->root, err);
    cleanup_fd(&work.empty);
    return r;
}
