/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Gives a process of the server a file system of its own: a mount namespace with a new root. The
 * root contains the system's folders (system_paths.h) and /proc, both read-only, a few devices,
 * and optionally parts of one folder to work in (then /proc is writable where there is Landlock).
 * No other file of the host is visible.
 */

#include "base/error.h"

struct view {
    /* Absolute path of a folder that appears at the same path, read-only. NULL: none. With a folder
     * the view has a writable /tmp, too. */
    const char *folder;
    /* Subfolders that are writable, including file systems mounted there. File systems mounted
     * elsewhere below the folder are not visible. NULL at the end. */
    const char *const *parts;
};

/* Moves this process into a new view. Needs CAP_SYS_ADMIN. Close or reopen directory descriptors:
 * those opened before lead out of the view. After a failure the process must exit. */
int view_enter(const struct view *view, struct error *err);
