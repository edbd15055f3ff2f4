/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest pid 1 that can be asked to run something: the floor under the agent. Static and
 * without dependencies, like the agent. One connection, one command at a time:
 *
 *   request:  'b' or 'c', then argv as strings with their NULs
 *   answer:   one byte of exit status, then the output
 *
 * 'b' is barely fork, exec, wait. 'c' is what every exec of the product has to do as well: join
 * the sandbox's limits and a cgroup of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* <linux/sched.h> is not among musl's headers. */
struct clone_args {
    unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls,
        set_tid, set_tid_size, cgroup;
};

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

enum { FD_LISTEN = 3, FD_CGROUP = 4, FD_JOIN = 5, ARGS_MAX = 16, MESSAGE_MAX = 512 };

struct job {
    char *argv[ARGS_MAX + 1];
    int out;
    int joins;
    int own; /* directory of its own cgroup; -1: none */
};

/* Runs in the parent's memory until the exec: it touches nothing but fds. */
static _Noreturn void run(const struct job *job)
{
    static char *const environment[] = {(char *)"PATH=/usr/bin", NULL};
    for (int i = 0; i < job->joins; i++)
        if (write(FD_JOIN + i, "0", 1) < 0)
            _exit(125);
    dup2(job->out, STDOUT_FILENO);
    execve(job->argv[0], job->argv, environment);
    _exit(127);
}

static int split(char *bytes, ssize_t len, char **argv)
{
    int count = 0;
    for (char *p = bytes; p < bytes + len && count < ARGS_MAX; p += strlen(p) + 1)
        argv[count++] = p;
    argv[count] = NULL;
    return count;
}

static int make_own_cgroup(unsigned number, char *name, size_t size)
{
    snprintf(name, size, "e%u", number);
    if (mkdirat(FD_CGROUP, name, 0755) < 0)
        return -1;
    return openat(FD_CGROUP, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* vfork() into a cgroup. Inline, because the child must not return from a function whose frame the
 * parent still needs. */
static inline __attribute__((always_inline)) long vfork_into(int cgroup)
{
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (unsigned)cgroup,
    };
#ifdef __x86_64__
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_clone3), "D"(&args), "S"(sizeof(args))
                     : "rcx", "r11", "memory");
    return result;
#else
    args.flags &= ~(unsigned long long)CLONE_VM;
    return syscall(SYS_clone3, &args, sizeof(args));
#endif
}

/* Fills answer: status and output. Returns its length. */
static size_t execute(struct job *job, int pipe_in, char *answer)
{
    pid_t pid = job->own >= 0 ? (pid_t)vfork_into(job->own) : vfork();
    if (pid == 0)
        run(job);
    close(job->out);
    size_t len = 1;
    for (ssize_t n; len < MESSAGE_MAX; len += (size_t)n)
        if ((n = read(pipe_in, answer + len, MESSAGE_MAX - len)) <= 0)
            break;
    int status = -1;
    waitpid(pid, &status, 0);
    answer[0] = (char)(WIFEXITED(status) ? WEXITSTATUS(status) : 128);
    return len;
}

static int serve_one(int fd, int joins, unsigned number)
{
    char request[MESSAGE_MAX + 1], answer[MESSAGE_MAX], name[32];
    ssize_t n = read(fd, request, MESSAGE_MAX);
    if (n < 2)
        return -1;
    request[n] = '\0';
    struct job job = {.own = -1};
    int pipe_fds[2];
    if (split(request + 1, n - 1, job.argv) == 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -1;
    job.out = pipe_fds[1];
    if (request[0] == 'c') {
        job.joins = joins;
        job.own = make_own_cgroup(number, name, sizeof(name));
    }
    size_t len = execute(&job, pipe_fds[0], answer);
    ssize_t sent = write(fd, answer, len);
    close(pipe_fds[0]);
    if (job.own >= 0) { /* after the answer: nobody waits for it */
        close(job.own);
        unlinkat(FD_CGROUP, name, AT_REMOVEDIR);
    }
    return sent == (ssize_t)len ? 0 : -1;
}

int main(int argc, char **argv)
{
    int joins = argc > 1 ? argv[1][0] - '0' : 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    for (int fd = FD_LISTEN; fd < FD_JOIN + joins; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    unsigned number = 0;
    for (;;) {
        int fd = accept4(FD_LISTEN, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return 1;
        while (serve_one(fd, joins, number++) == 0)
            ;
        close(fd);
    }
}
