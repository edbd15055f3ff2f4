/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which disks the rates of a sandbox are about. Its layer is on a volume of its own (a loop device
 * over a file, mostly), its image on the machine's file systems: what it reads and writes goes to
 * one or the other, so a limit is set on each of them. A request that passes through the loop
 * device to the disk below is counted at both, by the same rate, and so is not slowed down twice.
 */

#include <stddef.h>
#include <sys/types.h>

enum { IO_DEVICES_MAX = 8 };

struct io_devices {
    dev_t of[IO_DEVICES_MAX]; /* whole disks: the kernel limits no partition */
    size_t count;
};

/* Adds the disks that hold the file system of `path`, unless they are there already. A file system
 * without a disk (tmpfs, overlay) adds nothing. */
void io_devices_add(struct io_devices *devices, const char *path);
