/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A btrfs volume in a sparse loop file, and the subvolumes on it. */

#include <stdint.h>

#include "base/error.h"

/* Makes DIR/volume.img and mounts it at DIR/volume; returns an fd of its root. The loop device
 * clears itself when the mount goes. */
int volume_open(const char *dir, int *ret_fd, struct error *err);

int subvolume_create(int volume_fd, const char *name, uint64_t limit, int *ret_fd,
                     struct error *err);
int subvolume_destroy(int volume_fd, const char *name, struct error *err);
