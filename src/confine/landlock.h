/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Landlock: what a process and everything that it starts may do with files, by folders. A process
 * takes rights away from itself, for good; it needs no privilege for that but no_new_privs.
 *
 * Kernels know different versions of Landlock (its ABI). What a kernel does not know is left out;
 * below LANDLOCK_ABI_MIN nothing is done at all, since files could not be moved between folders.
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
    const char *path; /* one that does not exist is left out; NULL: fd */
    int fd;
    unsigned rights;
};

/* The version that the running kernel has; 0: none, or switched off. */
int landlock_abi(void);

/* A set of rules: whatever they do not allow is refused. *ret_fd is -1 on kernels below
 * LANDLOCK_ABI_MIN. */
int landlock_prepare(const struct landlock_rule *rules, size_t count, unsigned refusals,
                     int *ret_fd, struct error *err);

/* Puts it into force for this thread and everything it starts. Nothing on -1. Returns 0 or an
 * errno. Only system calls: fine between vfork and exec. */
int landlock_enforce(int fd);
