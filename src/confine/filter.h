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

/* The filter of a process of the server. What it refuses is told to the kernel's audit log, but for
 * calls that look as if the kernel had none. Returns 0 or an errno. Only system calls: fine between
 * vfork and exec. */
int filter_load_server(enum filter_name name);
