/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fail closed: any step that does not work ends the child, and the parent rolls back. What is
 * done where is bound by rights: mounts need CAP_SYS_ADMIN of the user namespace, and so does
 * loading seccomp without no_new_privs, so capabilities go last.
 */
#include "floor/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define USUAL (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static const struct {
    const char *target, *type, *options;
    unsigned long flags;
} file_systems[] = {
    {"proc", "proc", NULL, USUAL},
    {"dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=0620,gid=5", MS_NOSUID | MS_NOEXEC},
    {"dev/shm", "tmpfs", "mode=1777,size=64m", USUAL},
    {"dev/mqueue", "mqueue", NULL, USUAL},
    {"sys", "sysfs", NULL, USUAL | MS_RDONLY},
};

enum mask_kind { MASK_HIDE, MASK_READ_ONLY };

static const struct {
    const char *path;
    enum mask_kind kind;
} masks[] = {
    {"proc/acpi", MASK_HIDE},
    {"proc/asound", MASK_HIDE},
    {"proc/interrupts", MASK_HIDE},
    {"proc/kcore", MASK_HIDE},
    {"proc/keys", MASK_HIDE},
    {"proc/latency_stats", MASK_HIDE},
    {"proc/sched_debug", MASK_HIDE},
    {"proc/scsi", MASK_HIDE},
    {"proc/timer_list", MASK_HIDE},
    {"proc/timer_stats", MASK_HIDE},
    {"sys/devices/virtual/powercap", MASK_HIDE},
    {"sys/firmware", MASK_HIDE},
    {"proc/bus", MASK_READ_ONLY},
    {"proc/fs", MASK_READ_ONLY},
    {"proc/irq", MASK_READ_ONLY},
    {"proc/sys", MASK_READ_ONLY},
    {"proc/sysrq-trigger", MASK_READ_ONLY},
};

/* Docker's default set. */
static const int kept_capabilities[] = {
    CAP_CHOWN,      CAP_DAC_OVERRIDE, CAP_FSETID,           CAP_FOWNER,      CAP_MKNOD,
    CAP_NET_RAW,    CAP_SETGID,       CAP_SETUID,           CAP_SETFCAP,     CAP_SETPCAP,
    CAP_SYS_CHROOT, CAP_KILL,         CAP_NET_BIND_SERVICE, CAP_AUDIT_WRITE,
};

static int receive_mounts(int control, int fds[MOUNT_COUNT], struct error *err)
{
    char byte;
    struct iovec iov = {&byte, 1};
    union {
        char bytes[CMSG_SPACE(sizeof(int) * MOUNT_COUNT)];
        struct cmsghdr align;
    } ancillary;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = ancillary.bytes,
                         .msg_controllen = sizeof(ancillary.bytes)};
    ssize_t n = recvmsg(control, &msg, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (header == NULL || header->cmsg_len != CMSG_LEN(sizeof(int) * MOUNT_COUNT))
        return error_set(err, ERROR_UNAVAILABLE, "the parent sent no mounts");
    memcpy(fds, CMSG_DATA(header), sizeof(int) * MOUNT_COUNT);
    return 0;
}

static int become_root(const struct host *host, const struct sandbox *sandbox, struct error *err)
{
    for (int i = 0; i < sandbox->place.count; i++)
        if (cgroup_joined_at_birth(&host->cgroups, i) && sandbox->place.join_fd[i] >= 0 &&
            write(sandbox->place.join_fd[i], "0", 1) < 0)
            return error_sys(err, "join cgroup %d", i);
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 || setgroups(0, NULL) < 0)
        return error_sys(err, "become root of the user namespace");
    if (unshare(CLONE_NEWCGROUP) < 0)
        return error_sys(err, "unshare the cgroup namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return error_sys(err, "make / a slave");
    return 0;
}

static int hide(const char *path, const char **first_tmpfs, struct error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "stat %s", path);
    int r;
    if (!S_ISDIR(st.st_mode)) {
        r = mount("dev/null", path, NULL, MS_BIND, NULL);
    } else if (*first_tmpfs == NULL) {
        *first_tmpfs = path;
        r = mount("tmpfs", path, "tmpfs", USUAL | MS_RDONLY, "size=0,nr_inodes=1");
    } else { /* one empty file system is enough for all of them */
        r = mount(*first_tmpfs, path, NULL, MS_BIND, NULL);
    }
    return r < 0 ? error_sys(err, "mask %s", path) : 0;
}

static int make_read_only(const char *path, struct error *err)
{
    if (access(path, F_OK) < 0)
        return 0;
    if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0 ||
        mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | USUAL, NULL) < 0)
        return error_sys(err, "make %s read-only", path);
    return 0;
}

/* clone3() passes seccomp, since the init has to clone into cgroups and its flags cannot be read
 * there: so that nobody inside gets a user namespace, and capabilities with it, there may be none.
 */
static int forbid_user_namespaces(struct error *err)
{
    _cleanup_fd_ int fd = open("proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) < 0)
        return error_sys(err, "forbid user namespaces");
    return 0;
}

static int attach(int fd, const char *target, struct error *err)
{
    if (move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return error_sys(err, "attach the mount of %s", target);
    close(fd);
    return 0;
}

static int build_root(const int fds[MOUNT_COUNT], struct error *err)
{
    /* Any directory will do: nobody else sees this mount, and the pivot removes what is below. */
    if (attach(fds[MOUNT_ROOT], "/tmp", err) < 0)
        return -1;
    if (chdir("/tmp") < 0)
        return error_sys(err, "chdir");
    if (attach(fds[MOUNT_USR], "usr", err) < 0 || attach(fds[MOUNT_DEV], "dev", err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(file_systems); i++)
        if (mount(file_systems[i].type, file_systems[i].target, file_systems[i].type,
                  file_systems[i].flags, file_systems[i].options) < 0)
            return error_sys(err, "mount %s", file_systems[i].target);
    if (forbid_user_namespaces(err) < 0)
        return -1;
    const char *first_tmpfs = NULL;
    for (size_t i = 0; i < ARRAY_LEN(masks); i++)
        if ((masks[i].kind == MASK_HIDE ? hide(masks[i].path, &first_tmpfs, err)
                                        : make_read_only(masks[i].path, err)) < 0)
            return -1;
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return error_sys(err, "pivot_root");
    return 0;
}

static int loopback_up(struct error *err)
{
    _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return error_sys(err, "bring lo up");
    return 0;
}

static int drop_capabilities(struct error *err)
{
    uint64_t kept = 0;
    for (size_t i = 0; i < ARRAY_LEN(kept_capabilities); i++)
        kept |= 1ull << kept_capabilities[i];
    for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
        if ((kept & 1ull << cap) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 &&
            errno != EINVAL)
            return error_sys(err, "drop capability %d", cap);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)kept, .permitted = (uint32_t)kept},
        {.effective = (uint32_t)(kept >> 32), .permitted = (uint32_t)(kept >> 32)},
    };
    if (syscall(SYS_capset, &header, data) < 0)
        return error_sys(err, "capset");
    return 0;
}

/* fd 3: the listener, 4: the v2 directory, 5…: what a command joins. They are moved out of the way
 * first, since any of the wanted numbers may be in use. */
static int arrange_fds(const struct host *host, const struct sandbox *sandbox, int *ret_joins,
                       struct error *err)
{
    int wanted[2 + CGROUP_TREES_MAX] = {sandbox->listen_fd, sandbox->place.unified_fd};
    int count = 2;
    for (int i = 0; i < sandbox->place.count; i++)
        if (!cgroup_joined_at_birth(&host->cgroups, i))
            wanted[count++] = sandbox->place.join_fd[i];
    for (int i = 0; i < count; i++)
        if ((wanted[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, 64)) < 0)
            return error_sys(err, "move fds");
    for (int i = 0; i < count; i++)
        if (dup2(wanted[i], 3 + i) < 0)
            return error_sys(err, "place fd %d", 3 + i);
    if (close_range(3 + count, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        return error_sys(err, "close_range");
    *ret_joins = count - 2;
    return 0;
}

static int exec_init(const struct host *host, const struct sandbox *sandbox, struct error *err)
{
    if (sethostname("floor", 5) < 0 || setsid() < 0)
        return error_sys(err, "hostname and session");
    if (loopback_up(err) < 0)
        return -1;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &host->filter) < 0)
        return error_sys(err, "load the seccomp filter");
    if (drop_capabilities(err) < 0)
        return -1;
    /* The init's own fd has to stay clear of the numbers it is going to find its fds at. */
    int init = fcntl(host->init_fd, F_DUPFD_CLOEXEC, 64), joins = 0;
    if (init < 0)
        return error_sys(err, "move the init's fd");
    if (arrange_fds(host, sandbox, &joins, err) < 0)
        return -1;
    char count[] = {(char)('0' + joins), '\0'}, name[] = "floor-init";
    char *argv[] = {name, count, NULL}, *envp[] = {NULL};
    syscall(SYS_execveat, init, "", argv, envp, AT_EMPTY_PATH);
    return error_sys(err, "exec the init");
}

void child_run(const struct host *host, const struct sandbox *sandbox, int control)
{
    struct error err = {0};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);

    /* Out of the low numbers, so that what is said in case of an error still has a way out. */
    int out = fcntl(control, F_DUPFD_CLOEXEC, 100);
    int fds[MOUNT_COUNT];
    if (out >= 0 && receive_mounts(out, fds, &err) == 0 && become_root(host, sandbox, &err) == 0 &&
        build_root(fds, &err) == 0)
        exec_init(host, sandbox, &err);
    if (out >= 0 && write(out, &err, sizeof(err)) < 0)
        _exit(2);
    _exit(1);
}
