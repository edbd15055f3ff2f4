/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A child that shares the agent's memory until it execs.
 *
 * fork() copies page tables and then faults on every page that either side touches: more than all
 * the rest of starting a small program. vfork() does not, but suspends the agent until the child
 * execs, and a child in a throttled, frozen or stopped sandbox would take the agent with it. This
 * is between the two: shared memory, own stack, and both go on.
 *
 * So the child's code (SPAWN_CODE) may use nothing that the agent might be using at the same time:
 * no libc, no errno, only spawn_call() and what it was given. It is not dumpable, as the agent is
 * not, so nobody inside can look into it. Under AddressSanitizer, and where nobody has written the
 * few instructions that a processor needs for it, it is an ordinary fork.
 */

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPAWN_BY_FORK 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)
#define SPAWN_BY_FORK 1
#endif

/* Checks of a compiler's own would call into libc. */
#define SPAWN_CODE __attribute__((no_sanitize("undefined")))

enum { SPAWN_STACK_SIZE = 16 * 1024 };

#ifdef SPAWN_BY_FORK
static inline long spawn_call(long number, long a, long b, long c, long d)
{
    long result = syscall(number, a, b, c, d);
    return result < 0 ? -(long)errno : result;
}
#else
static inline __attribute__((always_inline)) long spawn_call(long number, long a, long b, long c,
                                                             long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}
#endif

/*
 * Starts fn(arg), which never returns, on `stack` (SPAWN_STACK_SIZE bytes, 16-aligned, the child's
 * until it has exec'ed or gone). cgroup_fd: where it is born; -1: where the agent is. *ret_inside
 * says whether it was: it has to move there itself if not. Returns its pid, or -1 with errno.
 */
pid_t spawn(void (*fn)(void *arg), void *arg, char *stack, int cgroup_fd, bool *ret_inside);
