/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The system call filters, each compiled at build time from a table of allowed calls.
 */

#include "base/error.h"

enum filter_name {
    FILTER_SANDBOX,        /* sandbox_calls.h */
    FILTER_SANDBOX_STRICT, /* the same without ptrace and its like */
};

/* Loads a filter for this thread and everything it starts, for good. Needs CAP_SYS_ADMIN in the
 * user namespace, or no_new_privs. */
int filter_load(enum filter_name name, struct error *err);
