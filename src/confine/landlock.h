/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Landlock restricts what a thread and its children may do with files, per folder. It needs no
 * privilege but no_new_privs, and cannot be undone.
 *
 * Kernels support different versions of Landlock (its ABI). Rights that a kernel does not know are
 * not restricted. Below LANDLOCK_ABI_MIN Landlock is not used at all, because version 1 forbids
 * every rename between folders.
 */

#include <stddef.h>

#include "base/error.h"

enum { LANDLOCK_ABI_MIN = 2 };

/* What may be done with a file, or with everything below a folder. */
enum landlock_rights {
    LANDLOCK_READ = 1 << 0,
    LANDLOCK_WRITE = 1 << 1,   /* to what is there, with ioctls of devices */
    LANDLOCK_MANAGE = 1 << 2,  /* make, remove, rename: files, folders, links, sockets */
    LANDLOCK_EXECUTE = 1 << 3, /* and read */
};

enum landlock_refusals {
    LANDLOCK_NO_TCP_BIND = 1 << 0,
    LANDLOCK_NO_TCP_CONNECT = 1 << 1,
    LANDLOCK_NO_ABSTRACT_SOCKETS = 1 << 2, /* of processes outside */
    LANDLOCK_NO_SIGNALS = 1 << 3,          /* to processes outside */
};

struct landlock_rule {
    const char *path; /* skipped if it does not exist; NULL: use fd */
    int fd;
    unsigned rights;
};

/* The version that the running kernel supports; 0: none, or disabled at boot. */
int landlock_abi(void);

/* Makes a ruleset: everything that no rule allows is refused. *ret_fd is -1 on kernels below
 * LANDLOCK_ABI_MIN. */
int landlock_prepare(const struct landlock_rule *rules, size_t count, unsigned refusals,
                     int *ret_fd, struct error *err);

/* Applies a ruleset to this thread and its children; -1 does nothing. Returns 0 or an errno. Makes
 * system calls only, so it may run between vfork and exec. */
int landlock_enforce(int fd);
