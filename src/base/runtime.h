/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folders of sockets and records (DIR/run/agents, DIR/run/sandboxes) as tmpfs. Every start
 * makes a file in each and every stop removes it again; a disk's file system is slow at exactly
 * that (ext4: 0.7 ms for a file soon after others were deleted), and what is in them means nothing
 * after a reboot.
 */

#include <stdbool.h>

#include "base/error.h"

/* Mounts them where the machine sees them. *ret_made: whether one was not mounted already, by an
 * earlier server. */
int runtime_mount(const char *data, bool *ret_made, struct error *err);
void runtime_unmount(const char *data);

/* Whether a mount point, relative to the data folder, is one of them. */
bool runtime_is_mount(const char *relative);
