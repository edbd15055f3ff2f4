/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a process of the server can do once it was taken over. This program is confined as one of
 * them, and tries: one line for each attempt, with its name and its errno (0: it worked).
 *
 *     confine-attempts cellad|egress|git FOLDER UID
 *
 * FOLDER is a data folder, with db, history and audit that belong to UID; git works in
 * FOLDER/history. Without root there is no view of the file system, and UID is not looked at.
 * tests/security/test_server_confinement.py runs it, and knows what is to come out.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "confine/confine.h"
#include "confine/view.h"

enum { IO_URING_SETUP = 425, CLONE3 = 435, MEMFD_SECRET = 447, NEWER = 999, OUTSIDE_PID = 1 };

static const struct {
    const char *name;
    long number, a, b, c, d;
} calls[] = {
    {"mount", SYS_mount, 0, 0, 0, 0},
    {"umount2", SYS_umount2, 0, 0, 0, 0},
    {"pivot_root", SYS_pivot_root, 0, 0, 0, 0},
    {"chroot", SYS_chroot, 0, 0, 0, 0},
    {"unshare-user", SYS_unshare, CLONE_NEWUSER, 0, 0, 0},
    {"unshare-mount", SYS_unshare, CLONE_NEWNS, 0, 0, 0},
    {"unshare-net", SYS_unshare, CLONE_NEWNET, 0, 0, 0},
    {"setns", SYS_setns, -1, 0, 0, 0},
    {"clone-user", SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0},
    {"clone-mount", SYS_clone, CLONE_NEWNS | SIGCHLD, 0, 0, 0},
    {"clone3", CLONE3, 0, 0, 0, 0},
    {"newer", NEWER, 0, 0, 0, 0},
    {"ptrace", SYS_ptrace, 0x7fff, 0, 0, 0},
    {"process_vm_readv", SYS_process_vm_readv, 0, 0, -1, 0},
    {"process_vm_writev", SYS_process_vm_writev, 0, 0, -1, 0},
    {"kcmp", SYS_kcmp, 0, 0, 0, 0},
    {"bpf", SYS_bpf, 0, 0, 0, 0},
    {"perf_event_open", SYS_perf_event_open, 0, 0, 0, 0},
    {"userfaultfd", SYS_userfaultfd, 0, 0, 0, 0},
    {"io_uring_setup", IO_URING_SETUP, 0, 0, 0, 0},
    {"io_setup", SYS_io_setup, 0, 0, 0, 0},
    {"keyctl", SYS_keyctl, 0, 0, 0, 0},
    {"add_key", SYS_add_key, 0, 0, 0, 0},
    {"request_key", SYS_request_key, 0, 0, 0, 0},
    {"kexec_load", SYS_kexec_load, 0, 0, 0, 0},
    {"init_module", SYS_init_module, 0, 0, 0, 0},
    {"finit_module", SYS_finit_module, -1, 0, 0, 0},
    {"name_to_handle_at", SYS_name_to_handle_at, -1, 0, 0, 0},
    {"open_by_handle_at", SYS_open_by_handle_at, -1, 0, 0, 0},
    {"fanotify_init", SYS_fanotify_init, 0, 0, 0, 0},
    {"fsopen", SYS_fsopen, 0, 0, 0, 0},
    {"open_tree", SYS_open_tree, -1, 0, 0, 0},
    {"mknodat", SYS_mknodat, -1, 0, 0, 0},
    {"fchownat", SYS_fchownat, -1, 0, 0, 0},
    {"setresuid", SYS_setresuid, -1, -1, -1, 0},
    {"setgroups", SYS_setgroups, 0, 0, 0, 0},
    {"capset", SYS_capset, 0, 0, 0, 0},
    {"personality", SYS_personality, 0xffffffff, 0, 0, 0},
    {"quotactl", SYS_quotactl, 0, 0, 0, 0},
    {"swapon", SYS_swapon, 0, 0, 0, 0},
    {"reboot", SYS_reboot, 0, 0, 0, 0},
    {"syslog", SYS_syslog, 3, 0, 0, 0},
    {"sethostname", SYS_sethostname, 0, 0, 0, 0},
    {"shmget", SYS_shmget, 0, 0, 0, 0},
    {"memfd_secret", MEMFD_SECRET, 0xffff, 0, 0, 0},
    {"packet-socket", SYS_socket, AF_PACKET, SOCK_RAW, 0, 0},
    {"vsock-socket", SYS_socket, AF_VSOCK, SOCK_STREAM, 0, 0},
    {"alg-socket", SYS_socket, AF_ALG, SOCK_SEQPACKET, 0, 0},
    {"tcp-socket", SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, 0},
    {"unix-socket", SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0},
    {"kill-others", SYS_kill, OUTSIDE_PID, 0, 0, 0},
    {"getpid", SYS_getpid, 0, 0, 0, 0},
    {"new-group", SYS_setpgid, 0, 0, 0, 0},
#ifdef __x86_64__
    {"modify_ldt", SYS_modify_ldt, 0, 0, 0, 0},
    {"iopl", SYS_iopl, 3, 0, 0, 0},
#endif
};

static void tell(const char *name, int error)
{
    printf("%s %d\n", name, error);
}

static void try_calls(void)
{
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        long r = syscall(calls[i].number, calls[i].a, calls[i].b, calls[i].c, calls[i].d, 0, 0);
        int error = r < 0 ? errno : 0;
        if (strncmp(calls[i].name, "clone", 5) == 0 && r == 0)
            _exit(0); /* the child that there should not be */
        tell(calls[i].name, error);
    }
}

static void try_open(const char *name, const char *folder, const char *path, int flags)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof(whole), "%s%s", folder, path);
    _cleanup_fd_ int fd = open(whole, flags | O_CLOEXEC, 0600);
    tell(name, fd < 0 ? errno : 0);
}

static void try_files(const char *folder)
{
    try_open("read-etc", "", "/etc/passwd", O_RDONLY);
    try_open("read-zone", "", "/usr/share/zoneinfo/UTC", O_RDONLY);
    try_open("read-proc-self", "", "/proc/self/status", O_RDONLY);
    try_open("read-urandom", "", "/dev/urandom", O_RDONLY);
    try_open("write-null", "", "/dev/null", O_WRONLY);
    try_open("write-etc", "", "/etc/written", O_WRONLY | O_CREAT);
    try_open("write-root", "", "/written", O_WRONLY | O_CREAT);
    try_open("write-proc", "", "/proc/self/comm", O_WRONLY);
    try_open("write-oom", "", "/proc/self/oom_score_adj", O_WRONLY);
    try_open("list-root", "", "/", O_RDONLY | O_DIRECTORY);
    try_open("list-home", "", "/home", O_RDONLY | O_DIRECTORY);
    try_open("list-var", "", "/var/log", O_RDONLY | O_DIRECTORY);
    try_open("list-sys", "", "/sys", O_RDONLY | O_DIRECTORY);
    try_open("list-above-data", folder, "/..", O_RDONLY | O_DIRECTORY);
    try_open("read-neighbour", folder, "-neighbour", O_RDONLY);
    try_open("read-database", folder, "/db/file", O_RDONLY);
    try_open("write-database", folder, "/db/new", O_WRONLY | O_CREAT);
    try_open("write-history", folder, "/history/new", O_WRONLY | O_CREAT);
    try_open("write-data", folder, "/new", O_WRONLY | O_CREAT);
    char from[PATH_MAX], to[PATH_MAX];
    snprintf(from, sizeof(from), "%s/history/new", folder);
    snprintf(to, sizeof(to), "%s/history/deep/moved", folder);
    tell("move-history", rename(from, to) < 0 ? errno : 0);
    tell("remove-history", unlink(to) < 0 ? errno : 0);
}

static void try_program(const char *name, const char *path)
{
    char *const argv[] = {(char *)path, (char *)"--version", NULL};
    char *const envp[] = {NULL};
    fflush(stdout);
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
            _exit(255);
        execve(path, argv, envp);
        _exit(errno);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        tell(name, errno);
    else
        tell(name, WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
}

static void *nothing(void *arg)
{
    return arg;
}

/* What libraries do by themselves. */
static void try_library(void)
{
    pthread_t thread;
    struct addrinfo *found = NULL;
    int error = pthread_create(&thread, NULL, nothing, NULL);
    if (error == 0)
        pthread_join(thread, NULL);
    tell("thread", error);
    tell("localhost", getaddrinfo("localhost", "80", NULL, &found));
    if (found != NULL)
        freeaddrinfo(found);
    setenv("TZ", "Europe/Paris", 1);
    tzset();
    tell("timezone", strcmp(tzname[0], "CET"));
}

static int confine(const char *what, const char *folder, struct error *err)
{
    char path[PATH_MAX];
    int rules = -1;
    if (strcmp(what, "egress") == 0)
        return confine_egress(NULL, err);
    _cleanup_fd_ int data = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (data < 0)
        return error_sys(err, "opening %s", folder);
    if (confine_cellad(data, err) < 0)
        return -1;
    if (strcmp(what, "cellad") == 0)
        return 0;
    snprintf(path, sizeof(path), "%s/history", folder);
    _cleanup_fd_ int repository = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (repository < 0)
        return error_sys(err, "opening %s", path);
    if (confine_git_prepare("/usr/bin/git", repository, &rules, err) < 0)
        return -1;
    errno = confine_git(rules);
    return errno == 0 ? 0 : error_sys(err, "confining git");
}

int main(int argc, char **argv)
{
    static const char *const parts[] = {LAYOUT_DB_DIR, LAYOUT_HISTORY, LAYOUT_AUDIT, NULL};
    struct error err = {0};
    if (argc != 4)
        return 2;
    bool egress = strcmp(argv[1], "egress") == 0;
    const struct view view = {.folder = egress ? NULL : argv[2], .parts = parts};
    uid_t uid = (uid_t)strtoul(argv[3], NULL, 10);
    int rc = 0;
    if (geteuid() == 0) {
        rc = view_enter(&view, &err);
        if (rc == 0 && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
            rc = error_sys(&err, "giving root up");
        prctl(PR_SET_DUMPABLE, 1); /* as exec makes it: its files in /proc belong to it */
    }
    if (rc < 0 || confine(argv[1], argv[2], &err) < 0) {
        fprintf(stderr, "confine-attempts: %s\n", err.message);
        return 1;
    }
    try_calls();
    try_files(argv[2]);
    try_program("run-true", "/bin/true");
    try_program("run-git", "/usr/bin/git");
    try_library();
    return 0;
}
