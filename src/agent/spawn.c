/* SPDX-License-Identifier: Apache-2.0 */

/* The birth of a child: one system call, and on x86-64 the jump to its own stack. */

#include "agent/spawn.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>

#include "wire/birth.h"

union request {
    struct clone_args args;
    char size[AGENT_CLONE_ARGS_SIZE]; /* what the sandbox's filter knows the agent by */
};

#ifdef SPAWN_BY_FORK

static long birth(union request *request, void (*fn)(void *arg), void *arg)
{
    long pid = syscall(SYS_clone3, request, sizeof(*request));
    if (pid == 0)
        fn(arg);
    return pid < 0 ? -(long)errno : pid;
}

#else

/* The child comes back from the system call on another stack: it must not return from here.
 * Registers but rax, rcx and r11 are as they were. */
static long birth(union request *request, void (*fn)(void *arg), void *arg)
{
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "mov %[arg], %%rdi\n\t"
                     "call *%[fn]\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(result)
                     : "0"((long)SYS_clone3), "D"(request),
                       "S"(sizeof(*request)), [fn] "r"(fn), [arg] "r"(arg)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

#endif

pid_t spawn(void (*fn)(void *arg), void *arg, char *stack, int cgroup_fd, bool *ret_inside)
{
    union request request = {.args = {.exit_signal = SIGCHLD}};
#ifndef SPAWN_BY_FORK
    request.args.flags = CLONE_VM;
    request.args.stack = (uintptr_t)stack;
    request.args.stack_size = SPAWN_STACK_SIZE;
#endif
    *ret_inside = cgroup_fd >= 0;
    long result = -ENOSYS;
    if (cgroup_fd >= 0) {
        request.args.flags |= CLONE_INTO_CGROUP;
        request.args.cgroup = (uint64_t)cgroup_fd;
        result = birth(&request, fn, arg);
        request.args.flags &= ~(uint64_t)CLONE_INTO_CGROUP;
        request.args.cgroup = 0;
    }
    if (result < 0 && result != -EAGAIN && result != -ENOMEM) {
        *ret_inside = false;
        result = birth(&request, fn, arg);
    }
    if (result == -ENOSYS) { /* an old kernel, or somebody else's filter */
        pid_t pid = fork();
        if (pid == 0)
            fn(arg);
        return pid;
    }
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    return (pid_t)result;
}
