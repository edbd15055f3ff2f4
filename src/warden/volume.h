/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A btrfs volume in a sparse file: made on the first start, mounted on every one. */

#include <stdint.h>

#include "base/error.h"

/* Mounts `file` on `target`; with no file there yet, makes one of `size` bytes first (0: most of
 * what is free, and not too much). UNAVAILABLE: the machine cannot (no loop devices, no btrfs, no
 * mkfs.btrfs), and nothing was left behind. */
int volume_mount(const char *file, const char *target, uint64_t size, struct error *err);
int volume_unmount(const char *target, struct error *err);

/* What `size` is when nobody says: 80 % of the free bytes, at most 1 TiB, whole MiB. */
uint64_t volume_default_size(uint64_t free_bytes);
