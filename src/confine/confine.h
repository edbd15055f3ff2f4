/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Confines the server's processes that parse untrusted input: cellad, the egress process and git.
 * Each gets a system call filter (server_calls.h), Landlock rules where the kernel supports them,
 * and no_new_privs. In addition, the supervisor starts cellad and egress in a view of the file
 * system (view.h).
 */

#include "base/error.h"

enum { CONFINE_REPORT_MAX = 160 };

/* What is in force, for the log: "a system call filter and Landlock (version 7)". */
void confine_describe(char out[CONFINE_REPORT_MAX]);

/* cellad may read the data folder, write its database, histories and audit log, and execute git.
 * Call this before starting a thread: the rules hold for the calling thread and its children. */
int confine_cellad(int data_fd, struct error *err);

/* egress may read system files and ca_file (NULL: none), and write nothing. */
int confine_egress(const char *ca_file, struct error *err);

/* Makes the rules for a git that works in one repository. The parent does this before it starts the
 * child; *ret_rules is -1 where the kernel has no Landlock. */
int confine_git_prepare(const char *program, int repository_fd, int *ret_rules, struct error *err);
/* Applies them in the child. Returns 0 or an errno. Makes system calls only, so it may run between
 * vfork and exec. */
int confine_git(int rules);
