/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A file system of its own for a process of the server: a mount namespace with a new root, in which
 * there is what a program needs of the system (system_paths.h), read-only, /proc, a few devices,
 * and parts of one folder to work in, if any. Nothing else of the machine has a name there.
 */

#include "base/error.h"

struct view {
    /* At its own path, which is absolute, and read-only; NULL: none. Then there is a /tmp, too. */
    const char *folder;
    /* Folders below it that can be written to, with what is mounted there; what is mounted
     * elsewhere below it is not to be seen. NULL at the end. */
    const char *const *parts;
};

/* Enters it, and its root. Takes CAP_SYS_ADMIN. Descriptors of folders that were opened before lead
 * out of it. On failure the process is somewhere in between, and has to end. */
int view_enter(const struct view *view, struct error *err);
