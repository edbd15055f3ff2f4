/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths of history: below the roots that a request names, and never through a link, wherever it
 * leads: who can make links in a tracked directory must not have the agent, which is root, read or
 * write elsewhere for him.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "agent/file_path.h"
#include "base/slice.h"
#include "wire/messages.h"

/* INVALID_ARGUMENT, INVALID_PATH unless they are what struct history_list says. */
int history_check_roots(struct slice roots, struct error *err);
/* INVALID_PATH unless it is normalized, and one of the roots or below one. */
int history_check_path(struct slice roots, const char *path, struct error *err);

/* Opens it; flags as of open(), O_CLOEXEC and O_NOFOLLOW are added. With O_PATH a link at the end
 * is opened itself. Sets errno alone. */
int history_open(const char *path, int flags);

/* The directory that it is in (O_PATH), and its name there, which is in `path`. `make`: missing
 * directories are made. Sets errno alone. */
int history_open_parent(const char *path, bool make, const char **ret_name);

/* All but path and target. */
void history_fill_entry(struct history_entry *entry, const struct stat *st);
