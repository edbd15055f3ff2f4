/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The once-only part of the recipe: none of it is timed.
 */
#include "floor/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "floor/filter.h"
#include "floor/volume.h"

/* Paths below the host's directory. A link when it has a target. */
struct item {
    const char *path;
    mode_t mode;
    const char *target;
};

static const struct item layout[] = {
    {"agents", 0700},
    {"masks", 0755},
    {"dev", 0755},
    {"skeleton", 0755},
    {"skeleton/bin", 0, "usr/bin"},
    {"skeleton/sbin", 0, "usr/sbin"},
    {"skeleton/lib", 0, "usr/lib"},
    {"skeleton/lib64", 0, "usr/lib64"},
    {"skeleton/dev", 0755},
    {"skeleton/etc", 0755},
    {"skeleton/home", 0755},
    {"skeleton/home/user", 0755},
    {"skeleton/proc", 0555},
    {"skeleton/root", 0700},
    {"skeleton/run", 0755},
    {"skeleton/sys", 0555},
    {"skeleton/tmp", 01777},
    {"skeleton/usr", 0755},
    {"skeleton/var", 0755},
    {"skeleton/workspace", 0755},
};

static const struct item dev_layout[] = {
    {"pts", 0755},
    {"shm", 0755},
    {"mqueue", 0755},
    {"ptmx", 0, "pts/ptmx"},
    {"fd", 0, "/proc/self/fd"},
    {"stdin", 0, "/proc/self/fd/0"},
    {"stdout", 0, "/proc/self/fd/1"},
    {"stderr", 0, "/proc/self/fd/2"},
};

static const struct {
    const char *name;
    int major, minor;
} devices[] = {
    {"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
    {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
};

static int make_items(int dir, const struct item *items, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct item *item = &items[i];
        int r = item->target != NULL ? symlinkat(item->target, dir, item->path)
                                     : mkdirat(dir, item->path, 0700);
        if (r == 0 && item->target == NULL)
            r = fchmodat(dir, item->path, item->mode, 0); /* whatever the umask is */
        if (r < 0)
            return error_sys(err, "make %s", item->path);
    }
    return 0;
}

static int make_dev(struct host *host, int dir, struct error *err)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/dev", host->dir);
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") < 0)
        return error_sys(err, "mount a tmpfs on %s", path);
    host->dev_fd = openat(dir, "dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (host->dev_fd < 0)
        return error_sys(err, "open %s", path);
    for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
        dev_t number = makedev(devices[i].major, devices[i].minor);
        if (mknodat(host->dev_fd, devices[i].name, S_IFCHR | 0666, number) < 0 ||
            fchmodat(host->dev_fd, devices[i].name, 0666, 0) < 0)
            return error_sys(err, "make /dev/%s", devices[i].name);
    }
    return make_items(host->dev_fd, dev_layout, ARRAY_LEN(dev_layout), err);
}

static int copy_command(int dir, const char *command, struct error *err)
{
    _cleanup_fd_ int in = open(command, O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int out =
        openat(dir, "skeleton/workspace/true", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    struct stat st;
    if (in < 0 || out < 0 || fstat(in, &st) < 0 ||
        sendfile(out, in, NULL, st.st_size) != st.st_size)
        return error_sys(err, "copy %s", command);
    return 0;
}

static int open_layers(struct host *host, int dir, struct error *err)
{
    host->skeleton_fd = openat(dir, "skeleton", O_PATH | O_DIRECTORY | O_CLOEXEC);
    host->mask_fd = openat(dir, "masks", O_PATH | O_DIRECTORY | O_CLOEXEC);
    host->usr_fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (host->skeleton_fd < 0 || host->mask_fd < 0 || host->usr_fd < 0)
        return error_sys(err, "open the layers");
    return 0;
}

int host_init(struct host *host, const char *dir_path, const char *init, const char *command,
              struct error *err)
{
    *host = HOST_EMPTY;
    snprintf(host->dir, sizeof(host->dir), "%s", dir_path);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return error_sys(err, "make a mount namespace (are you root?)");
    _cleanup_fd_ int dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return error_sys(err, "open %s", dir_path);
    if (make_items(dir, layout, ARRAY_LEN(layout), err) < 0 || make_dev(host, dir, err) < 0 ||
        copy_command(dir, command, err) < 0 || open_layers(host, dir, err) < 0)
        return -1;
    host->init_fd = open(init, O_PATH | O_CLOEXEC);
    if (host->init_fd < 0)
        return error_sys(err, "open %s", init);
    if (volume_open(dir_path, &host->volume_fd, err) < 0)
        return -1;
    if (filter_build(&host->filter, err) < 0)
        return -1;
    return cgroup_tree_open(&host->cgroups, err);
}

void host_release(struct host *host)
{
    int fds[] = {host->volume_fd, host->skeleton_fd, host->mask_fd,
                 host->usr_fd,    host->dev_fd,      host->init_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(host->filter.filter);
    cgroup_tree_release(&host->cgroups);

    /* The mounts would go with the namespace; unmounting here makes a busy one visible. */
    static const char *const mounts[] = {"volume", "dev"};
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        char path[300];
        snprintf(path, sizeof(path), "%s/%s", host->dir, mounts[i]);
        if (umount2(path, 0) < 0 && errno != EINVAL && errno != ENOENT)
            fprintf(stderr, "floor: umount %s: %s\n", path, strerror(errno));
    }
    *host = HOST_EMPTY;
}
