/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A row of a table of allowed system calls. The tables (sandbox_calls.h, server_calls.h) are read
 * at build time only, by seccomp_gen.c.
 *
 * A call that no row allows fails with EPERM. A call that is newer than the tables
 * (SECCOMP_NEWEST) fails with ENOSYS, so that a libc that tries it falls back to what it did
 * before.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * A filter compares registers, all 64 bits of them; of an int argument the kernel takes the lower
 * half. So an int is compared with SECCOMP_INT, which ignores the upper half. SECCOMP_NE compares
 * all bits: what it rules out can be had by setting one in the upper half.
 */
enum seccomp_compare {
    SECCOMP_ALWAYS,
    SECCOMP_EQ,
    SECCOMP_NE,
    SECCOMP_INT,
    SECCOMP_MASK_ZERO,
};

struct seccomp_row {
    const char *name;
    int number;    /* for calls that the build's libseccomp does not know yet; 0: by name */
    unsigned only; /* the programs made from this table that allow it; 0: all of them */
    /* Only when argument `arg` compares so with `value`. */
    enum seccomp_compare compare;
    unsigned arg;
    uint64_t value;
};

/*
 * The protocols that sockets of a family may have. Others fail with EPROTONOSUPPORT, as on a kernel
 * that was built without them: libaudit, which useradd and PAM ask first, and Go's runtime go on
 * without after that error, and give up after EPERM.
 */
struct seccomp_protocols {
    int family;
    unsigned protocols[6];
    size_t count;
};

/* removexattrat. Numbers from 424 on are the same on all architectures. */
enum { SECCOMP_NEWEST = 466 };

/* CLONE_NEW* but NEWTIME, which is not a flag of clone(). */
#define SECCOMP_NAMESPACE_FLAGS UINT64_C(0x7e020000)
