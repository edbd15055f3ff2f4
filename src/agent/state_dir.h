/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the agent keeps what has to outlive a worker: journals of trees that are being put, parts
 * of uploads. A directory at the root of the sandbox (or, when that is read-only, in /tmp), for its
 * root alone, on the sandbox's own quota; it is there only while something is in it. One that
 * belongs to somebody else, who could look into it, is not used.
 */

#include "base/error.h"

#define STATE_TREES   "trees"
#define STATE_UPLOADS "uploads"

/* Opens a directory in the state directory, making both where they are missing. */
int state_dir_open(const char *state_dir, const char *name, int *ret_fd, struct error *err);

/* Opens it if it is there; -1 when it is not. */
int state_dir_find(const char *state_dir, const char *name);

/* Removes both if they are empty. */
void state_dir_tidy(const char *state_dir, const char *name);
