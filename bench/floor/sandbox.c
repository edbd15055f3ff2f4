/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warden's half of the recipe. The order of the credential changes is what makes it work:
 * the user namespace has to be made with the euid of its own range (kernel counters are per
 * owner), and the overlays with fsuid and fsgid inside that range (else they come up read-only).
 */
#include "floor/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "floor/child.h"
#include "floor/volume.h"

enum {
    ID_BASE = 0x70000000, /* beyond what servers on this machine hand out (warden/ids.h) */
    ID_COUNT = 65536,
    ID_RANGES = 1024,
    TIMEOUT_S = 20,
};

static const uint64_t disk_limit = 1ull << 30;

const char *const sandbox_step_names[STEP_COUNT] = {
    [STEP_SUBVOLUME] = "subvolume and quota", [STEP_CGROUPS] = "cgroups and limits",
    [STEP_CLONE] = "socket and clone3",       [STEP_IDMAP] = "id maps and idmapped trees",
    [STEP_OVERLAY] = "two overlays",          [STEP_CHILD] = "child: mounts, pivot, seccomp, exec",
};

int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* Every change of euid or fsuid away from 0 clears effective capabilities. */
static int regain_capabilities(struct error *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) < 0)
        return error_sys(err, "capget");
    for (int i = 0; i < 2; i++)
        data[i].effective = data[i].permitted;
    if (syscall(SYS_capset, &header, data) < 0)
        return error_sys(err, "capset");
    return 0;
}

static int effective_ids(uid_t id, struct error *err)
{
    /* The group first on the way down, the user first on the way up: by capability, either way. */
    if (setresgid(-1, id, -1) < 0 || setresuid(-1, id, -1) < 0)
        return error_sys(err, "change the effective ids to %d", (int)id);
    return regain_capabilities(err);
}

static int fs_ids(uid_t id, struct error *err)
{
    setfsgid(id);
    setfsuid(id);
    return regain_capabilities(err);
}

static int listen_socket(struct host *host, struct sandbox *sandbox, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/agents/%u", host->dir,
             sandbox->number);
    sandbox->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sandbox->listen_fd < 0 ||
        bind(sandbox->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(sandbox->listen_fd, 8) < 0)
        return error_sys(err, "listen on %s", address.sun_path);
    return 0;
}

static int connect_init(struct host *host, struct sandbox *sandbox, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/agents/%u", host->dir,
             sandbox->number);
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    sandbox->init = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sandbox->init < 0 ||
        setsockopt(sandbox->init, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
        connect(sandbox->init, (struct sockaddr *)&address, sizeof(address)) < 0)
        return error_sys(err, "connect to %s", address.sun_path);
    return 0;
}

static int clone_child(struct host *host, struct sandbox *sandbox, struct error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "socketpair");
    sandbox->control = pair[0];
    _cleanup_fd_ int child_end = pair[1];
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    if (setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
        setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
        return error_sys(err, "set a time limit");

    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC |
                 CLONE_NEWNET | CLONE_PIDFD | CLONE_INTO_CGROUP,
        .pidfd = (uint64_t)(uintptr_t)&sandbox->pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)sandbox->place.unified_fd,
    };
    if (effective_ids(sandbox->base, err) < 0)
        return -1;
    pid_t pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        child_run(host, sandbox, child_end);
    int saved = errno;
    if (effective_ids(0, err) < 0)
        return -1;
    errno = saved;
    if (pid < 0)
        return error_sys(err, "clone3");
    sandbox->pid = pid;
    return 0;
}

static int write_map(pid_t pid, const char *file, uid_t base, struct error *err)
{
    char path[64], map[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int len = snprintf(map, sizeof(map), "0 %u %d", base, ID_COUNT);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, map, len) != len)
        return error_sys(err, "write %s", path);
    return 0;
}

static int idmapped_tree(int source, int user_namespace, uint64_t more, int *ret_fd,
                         struct error *err)
{
    _cleanup_fd_ int fd =
        open_tree(source, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open_tree");
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | more, .userns_fd = user_namespace};
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return error_sys(err, "mount_setattr");
    *ret_fd = steal_fd(&fd);
    return 0;
}

struct trees {
    int skeleton, masks, usr, dev, upper;
};

static void trees_release(struct trees *trees)
{
    int fds[] = {trees->skeleton, trees->masks, trees->usr, trees->dev, trees->upper};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int make_trees(struct host *host, struct sandbox *sandbox, struct trees *trees,
                      struct error *err)
{
    if (write_map(sandbox->pid, "uid_map", sandbox->base, err) < 0 ||
        write_map(sandbox->pid, "gid_map", sandbox->base, err) < 0)
        return -1;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)sandbox->pid);
    _cleanup_fd_ int ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return error_sys(err, "open %s", path);
    if (idmapped_tree(host->skeleton_fd, ns, MOUNT_ATTR_RDONLY, &trees->skeleton, err) < 0 ||
        idmapped_tree(host->mask_fd, ns, MOUNT_ATTR_RDONLY, &trees->masks, err) < 0 ||
        idmapped_tree(host->usr_fd, ns, MOUNT_ATTR_RDONLY, &trees->usr, err) < 0 ||
        idmapped_tree(host->dev_fd, ns, MOUNT_ATTR_RDONLY, &trees->dev, err) < 0 ||
        idmapped_tree(sandbox->volume_fd, ns, 0, &trees->upper, err) < 0)
        return -1;
    return 0;
}

static int overlay(const int *lowers, int count, int upper_tree, const char *upper,
                   const char *work, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int upper_fd = openat(upper_tree, upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int work_fd = openat(upper_tree, work, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int fs = fsopen("overlay", FSOPEN_CLOEXEC);
    if (upper_fd < 0 || work_fd < 0 || fs < 0)
        return error_sys(err, "open the upper folders and an overlay");
    for (int i = 0; i < count; i++)
        if (fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, lowers[i]) < 0)
            return error_sys(err, "overlay lower %d (Linux 6.13 or later is needed)", i);
    if (fsconfig(fs, FSCONFIG_SET_FD, "upperdir", NULL, upper_fd) < 0 ||
        fsconfig(fs, FSCONFIG_SET_FD, "workdir", NULL, work_fd) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "redirect_dir", "on", 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "metacopy", "on", 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return error_sys(err, "make the overlay");
    int fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
    if (fd < 0)
        return error_sys(err, "fsmount");
    *ret_fd = fd;
    return 0;
}

static int make_overlays(const struct sandbox *sandbox, const struct trees *trees, int *ret_root,
                         int *ret_usr, struct error *err)
{
    int root_lowers[] = {trees->skeleton};
    int usr_lowers[] = {trees->masks, trees->usr};
    _cleanup_fd_ int root = -1, usr = -1;
    struct error restored;
    if (fs_ids(sandbox->base, err) < 0)
        return -1;
    int r = overlay(root_lowers, 1, trees->upper, "root", "root.work", &root, err);
    if (r == 0)
        r = overlay(usr_lowers, 2, trees->upper, "usr", "usr.work", &usr, err);
    if (fs_ids(0, &restored) < 0 || r < 0)
        return -1;
    *ret_root = steal_fd(&root);
    *ret_usr = steal_fd(&usr);
    return 0;
}

static int send_mounts(int control, const int fds[MOUNT_COUNT], struct error *err)
{
    char byte = 'm';
    struct iovec iov = {&byte, 1};
    union {
        char bytes[CMSG_SPACE(sizeof(int) * MOUNT_COUNT)];
        struct cmsghdr align;
    } ancillary = {0};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = ancillary.bytes,
                         .msg_controllen = sizeof(ancillary.bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&msg);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * MOUNT_COUNT);
    memcpy(CMSG_DATA(header), fds, sizeof(int) * MOUNT_COUNT);
    if (sendmsg(control, &msg, MSG_NOSIGNAL) < 0)
        return error_sys(err, "send the mounts");
    return 0;
}

/* The end of the stream says that the exec was reached; anything else is the child's error. */
static int await_exec(struct sandbox *sandbox, struct error *err)
{
    struct error theirs;
    ssize_t n = recv(sandbox->control, &theirs, sizeof(theirs), MSG_WAITALL);
    if (n == 0) {
        close(sandbox->control);
        sandbox->control = -1;
        return 0;
    }
    if (n == (ssize_t)sizeof(theirs))
        return error_set(err, ERROR_INTERNAL, "in the child: %s", theirs.message);
    return error_sys(err, "wait for the child's exec");
}

static int make_storage(struct host *host, struct sandbox *sandbox, struct error *err)
{
    static const char *const folders[] = {"root", "root.work", "usr", "usr.work"};
    char name[16];
    snprintf(name, sizeof(name), "%u", sandbox->number);
    if (subvolume_create(host->volume_fd, name, disk_limit, &sandbox->volume_fd, err) < 0)
        return -1;
    sandbox->has_subvolume = true;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (mkdirat(sandbox->volume_fd, folders[i], 0755) < 0)
            return error_sys(err, "mkdir %s", folders[i]);
    return 0;
}

static int make_mounts(struct host *host, struct sandbox *sandbox, int64_t *lap, struct error *err)
{
    struct trees trees __attribute__((cleanup(trees_release))) = {-1, -1, -1, -1, -1};
    if (make_trees(host, sandbox, &trees, err) < 0)
        return -1;
    int64_t now = now_ns();
    sandbox->step[STEP_IDMAP] = now - *lap;
    *lap = now;
    _cleanup_fd_ int root = -1, usr = -1;
    if (make_overlays(sandbox, &trees, &root, &usr, err) < 0)
        return -1;
    now = now_ns();
    sandbox->step[STEP_OVERLAY] = now - *lap;
    *lap = now;
    int fds[MOUNT_COUNT] = {[MOUNT_ROOT] = root, [MOUNT_USR] = usr, [MOUNT_DEV] = trees.dev};
    return send_mounts(sandbox->control, fds, err);
}

static int build(struct host *host, struct sandbox *sandbox, struct error *err)
{
    char name[16];
    snprintf(name, sizeof(name), "%u", sandbox->number);
    int64_t lap = now_ns(), now;
#define LAP(which) (now = now_ns(), sandbox->step[which] = now - lap, lap = now)
    if (make_storage(host, sandbox, err) < 0)
        return -1;
    LAP(STEP_SUBVOLUME);
    if (cgroup_place_make(&host->cgroups, name, sandbox->base, &sandbox->place, err) < 0)
        return -1;
    sandbox->has_place = true;
    LAP(STEP_CGROUPS);
    if (listen_socket(host, sandbox, err) < 0 || clone_child(host, sandbox, err) < 0)
        return -1;
    LAP(STEP_CLONE);
    if (make_mounts(host, sandbox, &lap, err) < 0 || await_exec(sandbox, err) < 0)
        return -1;
    LAP(STEP_CHILD);
#undef LAP
    return connect_init(host, sandbox, err);
}

int sandbox_create(struct host *host, struct sandbox *ret_sandbox, struct error *err)
{
    struct sandbox sandbox = {.number = host->next++,
                              .pidfd = -1,
                              .control = -1,
                              .listen_fd = -1,
                              .init = -1,
                              .volume_fd = -1,
                              .place.unified_fd = -1};
    sandbox.base = ID_BASE + sandbox.number % ID_RANGES * ID_COUNT;
    if (build(host, &sandbox, err) < 0) {
        struct error ignored;
        sandbox_remove(host, &sandbox, &ignored);
        return -1;
    }
    *ret_sandbox = sandbox;
    return 0;
}

int sandbox_exec(struct sandbox *sandbox, enum exec_kind kind, const char *argv, size_t argv_len,
                 const char *want_output, struct error *err)
{
    char request[512], answer[512];
    if (argv_len + 1 > sizeof(request))
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "command too long");
    request[0] = (char)kind;
    memcpy(request + 1, argv, argv_len);
    ssize_t len = (ssize_t)argv_len + 1;
    if (send(sandbox->init, request, len, MSG_NOSIGNAL) != len)
        return error_sys(err, "send to the init");
    ssize_t n = recv(sandbox->init, answer, sizeof(answer) - 1, 0); /* sent in one piece */
    if (n < 1)
        return error_sys(err, "no answer from the init");
    answer[n] = '\0';
    if (answer[0] != 0 || strcmp(answer + 1, want_output) != 0)
        return error_set(err, ERROR_INTERNAL, "%s gave status %d and \"%s\"", argv, answer[0],
                         answer + 1);
    return 0;
}

static int end_processes(struct sandbox *sandbox, struct error *err)
{
    if (sandbox->pidfd < 0)
        return 0;
    /* Before it joined its cgroup only the pid reaches it; both are harmless when it is gone. */
    if (cgroup_place_kill(&sandbox->place, err) < 0)
        return -1;
    syscall(SYS_pidfd_send_signal, sandbox->pidfd, SIGKILL, NULL, 0);
    siginfo_t info;
    if (waitid(P_PIDFD, sandbox->pidfd, &info, WEXITED) < 0)
        return error_sys(err, "wait for the sandbox's end");
    return 0;
}

int sandbox_remove(struct host *host, struct sandbox *sandbox, struct error *err)
{
    int r = end_processes(sandbox, err);
    int fds[] = {sandbox->pidfd, sandbox->control, sandbox->listen_fd, sandbox->init,
                 sandbox->volume_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (sandbox->has_place)
        cgroup_place_remove(&host->cgroups, &sandbox->place);
    char path[300];
    if (sandbox->has_subvolume) {
        snprintf(path, sizeof(path), "%u", sandbox->number);
        if (subvolume_destroy(host->volume_fd, path, err) < 0)
            r = -1;
    }
    snprintf(path, sizeof(path), "%s/agents/%u", host->dir, sandbox->number);
    unlink(path);
    return r;
}
