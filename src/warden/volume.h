/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A btrfs volume in a file: made on the first start, mounted on every one. The file is allocated in
 * full (see volume_plan.h for its size) and nothing is discarded while it is mounted, so that a
 * write in the volume never lacks blocks of the disk below.
 */

#include <stdint.h>

#include "base/error.h"

/* Mounts `file` on `target`; with no file there yet, makes one first, small, since it grows with
 * its use; `max` is what it may grow to (0: no limit). UNAVAILABLE: the machine cannot (no loop
 * devices, no btrfs, no mkfs.btrfs), and nothing was left behind. */
int volume_mount(const char *file, const char *target, uint64_t max, struct error *err);
int volume_unmount(const char *target, struct error *err);

/* For a volume that is mounted already, perhaps by an older version: stops discards. */
int volume_stop_discard(const char *file, struct error *err);
