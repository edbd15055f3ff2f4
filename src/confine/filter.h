/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The system call filters, each compiled at build time from a table of allowed calls.
 */

#include "base/error.h"

enum filter_name {
    FILTER_SANDBOX,        /* sandbox_calls.h */
    FILTER_SANDBOX_STRICT, /* the same without ptrace and its like */
    FILTER_CELLAD,         /* server_calls.h */
    FILTER_EGRESS,
    FILTER_GIT,
};

/* Loads a filter for this thread and everything it starts, for good. Needs CAP_SYS_ADMIN in the
 * user namespace, or no_new_privs. */
int filter_load(enum filter_name name, struct error *err);

/* Loads the filter of one of the server's processes. Refused calls are written to the kernel's
 * audit log, except those that fail with ENOSYS. Returns 0 or an errno. Makes system calls only, so
 * it may run between vfork and exec. */
int filter_load_server(enum filter_name name);
