/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the server's processes that face strangers' bytes are confined: each by a system call filter
 * (server_calls.h), by Landlock where the kernel has it, and without new privileges. The supervisor
 * gives cellad and egress a view of the file system beside that (view.h). What is needed for that
 * is opened before, and what is left open is all that there is.
 */

#include "base/error.h"

enum { CONFINE_REPORT_MAX = 160 };

/* What is in force, for the log: "a system call filter and Landlock (version 7)". */
void confine_describe(char out[CONFINE_REPORT_MAX]);

/* The data folder is read, and its database, histories and audit log are written; programs are
 * those of git. Call it before any thread is
 * started. */
int confine_cellad(int data_fd, struct error *err);

/* ca_file: whom servers are believed for, wherever it is; NULL: none. */
int confine_egress(const char *ca_file, struct error *err);

/* For a git in one repository: the rules, made before the child is started (-1: none). */
int confine_git_prepare(const char *program, int repository_fd, int *ret_rules, struct error *err);
/* In the child. Returns 0 or an errno. Only system calls: fine between vfork and exec. */
int confine_git(int rules);
