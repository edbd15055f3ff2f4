/* SPDX-License-Identifier: Apache-2.0 */

/*
 * "No subprocess" is a filter on top of the sandbox's own, a dozen instructions long. fork and
 * vfork are refused, and clone unless it makes a thread. clone3 has its flags in memory, where a
 * filter cannot look: it does not exist, so that a libc falls back to clone. A foreign ABI has
 * other numbers for all of them: whoever speaks it is killed.
 *
 * The kernel takes a filter from those who have no_new_privs (the warden sees to that) or
 * CAP_SYS_ADMIN, and from nobody else, so this cannot quietly do nothing.
 */

#include "agent/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "agent/spawn.h"
#include "base/cleanup.h"

#if defined(__x86_64__)
#define NATIVE_ARCH     AUDIT_ARCH_X86_64
#define FOREIGN_NUMBERS 0x40000000 /* x32 */
#elif defined(__aarch64__)
#define NATIVE_ARCH     AUDIT_ARCH_AARCH64
#define FOREIGN_NUMBERS 0x40000000
#else
#error "no filter for this architecture"
#endif

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
/* The next instruction when it is so, the one after it when not. */
#define WHEN(test, value)   BPF_JUMP(BPF_JMP | (test) | BPF_K, value, 0, 1)
#define UNLESS(test, value) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, 1, 0)

static const struct sock_filter no_subprocess[] = {
    LOAD(arch),
    UNLESS(BPF_JEQ, NATIVE_ARCH),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    WHEN(BPF_JGE, FOREIGN_NUMBERS),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
#ifdef SYS_fork
    WHEN(BPF_JEQ, SYS_fork),
    ANSWER(SECCOMP_RET_ERRNO | EPERM),
    WHEN(BPF_JEQ, SYS_vfork),
    ANSWER(SECCOMP_RET_ERRNO | EPERM),
#endif
    WHEN(BPF_JEQ, SYS_clone3),
    ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
    UNLESS(BPF_JEQ, SYS_clone),
    ANSWER(SECCOMP_RET_ALLOW),
    LOAD(args[0]), /* the low half, of a little-endian machine: all flags are there */
    WHEN(BPF_JSET, CLONE_THREAD),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_ERRNO | EPERM),
};

static const struct sock_fprog program = {
    .len = ARRAY_LEN(no_subprocess),
    .filter = (struct sock_filter *)no_subprocess,
};

static const struct __user_cap_header_struct this_process = {.version =
                                                                 _LINUX_CAPABILITY_VERSION_3};
static const struct __user_cap_data_struct no_capabilities[_LINUX_CAPABILITY_U32S_3];

SPAWN_CODE long confine(const struct confinement *confinement)
{
    long result = 0;
    /* The filter first, for where it is CAP_SYS_ADMIN that allows it. */
    if (confinement->no_subprocess)
        result = spawn_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0);
    if (result == 0 && confinement->no_capabilities)
        result = spawn_call(SYS_capset, (long)&this_process, (long)no_capabilities, 0, 0);
    return result;
}
