/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies of whole trees, for storage that has no snapshots: everything that overlayfs and a
 * sandbox's root keep on disk, exactly. Contents (holes stay holes, and extents are shared where
 * the file system can), owners, modes with setuid bits, times, extended attributes of every kind,
 * links between the files of the tree, devices (whiteouts are such), pipes and sockets.
 */

#include <stdint.h>

#include "base/error.h"
#include "warden/storage.h"

/* Makes to/to_name, which is not there yet; "links" in `to` is used meanwhile. Stays on the file
 * system of `from`. On failure a part of the copy is left. CANCELLED when watch (may be NULL) says
 * stop. */
int tree_copy(int from, const char *from_name, int to, const char *to_name,
              const struct copy_watch *watch, struct error *err);
