/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which system calls the server's own processes may make: cellad, egress, and the git programs that
 * cellad starts (which are under cellad's filter, too). The lists contain the calls that these
 * programs make, and those that other versions of their libraries may make: calls for files,
 * memory, threads, time and sockets are harmless without privileges. Calls that affect other
 * processes, namespaces, mounts or the kernel itself are not listed.
 *
 * A refused call fails with EPERM and is written to the kernel's audit log. The process is not
 * killed, because that would turn an update of a library into an outage.
 */

#include <sys/socket.h>

#include "confine/seccomp_row.h"

enum server_process { CELLAD = 1 << 0, EGRESS = 1 << 1, GIT = 1 << 2 };

static const struct seccomp_row server_allowed[] = {
    /* reading and writing */
    {"close"},
    {"close_range"},
    {"dup"},
    {"dup2"},
    {"dup3"},
    {"fadvise64"},
    {"fcntl"},
    {"fdatasync"},
    {"flock"},
    {"fsync"},
    {"ioctl"},
    {"lseek"},
    {"memfd_create"},
    {"pipe"},
    {"pipe2"},
    {"pread64"},
    {"preadv"},
    {"preadv2"},
    {"pwrite64"},
    {"pwritev"},
    {"pwritev2"},
    {"read"},
    {"readahead"},
    {"readv"},
    {"sync_file_range"},
    {"write"},
    {"writev"},
    {"copy_file_range", .only = CELLAD | GIT},
    {"fallocate", .only = CELLAD | GIT},
    {"ftruncate", .only = CELLAD | GIT},
    {"sendfile", .only = CELLAD | EGRESS},
    {"splice", .only = CELLAD | EGRESS},
    {"sync", .only = CELLAD | GIT},
    {"syncfs", .only = CELLAD | GIT},
    {"tee", .only = CELLAD | EGRESS},
    {"truncate", .only = CELLAD | GIT},

    /* looking at files */
    {"access"},
    {"cachestat", .number = 451},
    {"chdir"},
    {"faccessat"},
    {"faccessat2"},
    {"fchdir"},
    {"fstat"},
    {"fstatfs"},
    {"getcwd"},
    {"getdents"},
    {"getdents64"},
    {"lstat"},
    {"newfstatat"},
    {"open"},
    {"openat"},
    {"openat2"},
    {"readlink"},
    {"readlinkat"},
    {"stat"},
    {"statfs"},
    {"statx"},
    {"umask"},

    /* changing them */
    {"chmod", .only = CELLAD | GIT},
    {"creat", .only = CELLAD | GIT},
    {"fchmod", .only = CELLAD | GIT},
    {"fchmodat", .only = CELLAD | GIT},
    {"fchmodat2", .number = 452, .only = CELLAD | GIT},
    {"link", .only = CELLAD | GIT},
    {"linkat", .only = CELLAD | GIT},
    {"mkdir", .only = CELLAD | GIT},
    {"mkdirat", .only = CELLAD | GIT},
    {"rename", .only = CELLAD | GIT},
    {"renameat", .only = CELLAD | GIT},
    {"renameat2", .only = CELLAD | GIT},
    {"rmdir", .only = CELLAD | GIT},
    {"symlink", .only = CELLAD | GIT},
    {"symlinkat", .only = CELLAD | GIT},
    {"unlink", .only = CELLAD | GIT},
    {"unlinkat", .only = CELLAD | GIT},
    {"utime", .only = CELLAD | GIT},
    {"utimensat", .only = CELLAD | GIT},
    {"utimes", .only = CELLAD | GIT},

    /* waiting */
    {"poll"},
    {"ppoll"},
    {"pselect6"},
    {"select"},
    {"epoll_create", .only = CELLAD | EGRESS},
    {"epoll_create1", .only = CELLAD | EGRESS},
    {"epoll_ctl", .only = CELLAD | EGRESS},
    {"epoll_pwait", .only = CELLAD | EGRESS},
    {"epoll_pwait2", .only = CELLAD | EGRESS},
    {"epoll_wait", .only = CELLAD | EGRESS},
    {"eventfd", .only = CELLAD | EGRESS},
    {"eventfd2", .only = CELLAD | EGRESS},
    {"inotify_add_watch", .only = CELLAD | EGRESS},
    {"inotify_init1", .only = CELLAD | EGRESS},
    {"inotify_rm_watch", .only = CELLAD | EGRESS},
    {"signalfd", .only = CELLAD | EGRESS},
    {"signalfd4", .only = CELLAD | EGRESS},
    {"timerfd_create", .only = CELLAD | EGRESS},
    {"timerfd_gettime", .only = CELLAD | EGRESS},
    {"timerfd_settime", .only = CELLAD | EGRESS},

    /* memory */
    {"brk"},
    {"get_mempolicy"}, /* allocators ask for it */
    {"madvise"},
    {"map_shadow_stack", .number = 453},
    {"membarrier"},
    {"mincore"},
    {"mlock"},
    {"mlock2"},
    {"mmap"},
    {"mprotect"},
    {"mremap"},
    {"mseal", .number = 462},
    {"msync"},
    {"munlock"},
    {"munmap"},
    {"pkey_alloc"},
    {"pkey_free"},
    {"pkey_mprotect"},

    /* threads */
    {"arch_prctl"},
    {"clone", .compare = SECCOMP_MASK_ZERO, .arg = 0, .value = SECCOMP_NAMESPACE_FLAGS},
    {"exit"},
    {"exit_group"},
    {"futex"},
    {"futex_requeue", .number = 456},
    {"futex_wait", .number = 455},
    {"futex_waitv"},
    {"futex_wake", .number = 454},
    {"get_robust_list"},
    {"getcpu"},
    {"gettid"},
    {"prctl"},
    {"rseq"},
    {"sched_get_priority_max"},
    {"sched_get_priority_min"},
    {"sched_getaffinity"},
    {"sched_getattr"},
    {"sched_getparam"},
    {"sched_getscheduler"},
    {"sched_yield"},
    {"set_robust_list"},
    {"set_tid_address"},
#ifdef __x86_64__
    {"uretprobe", .number = 335}, /* when somebody traces a function of ours */
#endif
    {"sched_setattr", .only = CELLAD | EGRESS},

    /* who we are, and what there is */
    {"capget"},
    {"getegid"},
    {"geteuid"},
    {"getgid"},
    {"getgroups"},
    {"getpgid"},
    {"getpgrp"},
    {"getpid"},
    {"getppid"},
    {"getpriority"},
    {"getrandom"},
    {"getresgid"},
    {"getresuid"},
    {"getrlimit"},
    {"getrusage"},
    {"getsid"},
    {"getuid"},
    {"prlimit64"},
    {"setrlimit"},
    {"sysinfo"},
    {"uname"},

    /* signals */
    {"pause"},
    {"restart_syscall"},
    {"rt_sigaction"},
    {"rt_sigpending"},
    {"rt_sigprocmask"},
    {"rt_sigreturn"},
    {"rt_sigsuspend"},
    {"rt_sigtimedwait"},
    {"sigaltstack"},
    {"tgkill"}, /* abort(), of musl by tkill */
    {"tkill"},
    {"kill", .only = CELLAD | GIT},
    {"pidfd_open", .only = CELLAD},
    {"pidfd_send_signal", .only = CELLAD},

    /* time */
    {"alarm"},
    {"clock_getres"},
    {"clock_gettime"},
    {"clock_nanosleep"},
    {"getitimer"},
    {"gettimeofday"},
    {"nanosleep"},
    {"setitimer"},
    {"time"},
    {"times"},
    {"timer_create"},
    {"timer_delete"},
    {"timer_gettime"},
    {"timer_settime"},

    /* Sockets. Of netlink there is what getaddrinfo() and if_nametoindex() ask. */
    {"accept", .only = CELLAD | EGRESS},
    {"accept4", .only = CELLAD | EGRESS},
    {"bind", .only = CELLAD | EGRESS},
    {"connect", .only = CELLAD | EGRESS},
    {"getpeername", .only = CELLAD | EGRESS},
    {"getsockname", .only = CELLAD | EGRESS},
    {"getsockopt", .only = CELLAD | EGRESS},
    {"listen", .only = CELLAD},
    {"recvfrom", .only = CELLAD | EGRESS},
    {"recvmmsg", .only = CELLAD | EGRESS},
    {"recvmsg", .only = CELLAD | EGRESS},
    {"sendmmsg", .only = CELLAD | EGRESS},
    {"sendmsg", .only = CELLAD | EGRESS},
    {"sendto", .only = CELLAD | EGRESS},
    {"setsockopt", .only = CELLAD | EGRESS},
    {"shutdown", .only = CELLAD | EGRESS},
    {"socket", .only = CELLAD | EGRESS, .compare = SECCOMP_INT, .value = AF_UNIX},
    {"socket", .only = CELLAD | EGRESS, .compare = SECCOMP_INT, .value = AF_INET},
    {"socket", .only = CELLAD | EGRESS, .compare = SECCOMP_INT, .value = AF_INET6},
    {"socket", .only = CELLAD | EGRESS, .compare = SECCOMP_INT, .value = AF_NETLINK},
    {"socketpair", .compare = SECCOMP_INT, .value = AF_UNIX},

    /* other programs: cellad's git, and what that starts of git */
    {"execve", .only = CELLAD | GIT},
    {"fork", .only = CELLAD | GIT},
    {"vfork", .only = CELLAD | GIT},
    {"wait4", .only = CELLAD | GIT},
    {"waitid", .only = CELLAD | GIT},
    {"setpgid", .only = CELLAD | GIT},
    {"setsid", .only = CELLAD | GIT},

    /* which takes more away: the program below, cellad's git */
    {"seccomp"},
    {"landlock_add_rule"},
    {"landlock_create_ruleset"},
    {"landlock_restrict_self"},

#ifdef CELLA_SANITIZED
    /* A build with sanitizers only: the search for leaks stops all threads, reports ask a program
     * for the names of functions. */
    {"execve"},
    {"fork"},
    {"kill"},
    {"personality"},
    {"ptrace"},
    {"process_vm_readv"},
    {"sched_setaffinity"},
    {"socketpair"},
    {"vfork"},
    {"wait4"},
#endif
};

/* clone3 has its flags in memory, where a filter cannot see them: a libc falls back to clone. It
 * does so for every thread, so this is a program of its own, which is loaded last and without
 * logging: of two that refuse a call the kernel takes the answer of the newer one. */
static const struct seccomp_row server_absent[] = {{"clone3"}};
