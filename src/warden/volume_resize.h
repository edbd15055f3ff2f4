/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The volume's file, its loop device and its file system, brought to one size while sandboxes use
 * it. Everything here waits for the disk.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "warden/volume_plan.h"

/* Fills in what the kernel knows, and leaves `max` alone. volume: the root of the file system;
 * data: the folder that the file is in. */
int volume_look(int volume, int data, const struct volume_reserve *reserve,
                struct volume_state *state, struct error *err);

/* Allocates the file up to `size`; where the file system below cannot allocate, *ret_sparse, and
 * the file is merely made longer. QUOTA_EXCEEDED: the disk is full, and the file is as it was. */
int volume_file_allocate(int file, uint64_t size, bool *ret_sparse, struct error *err);

/* Grows or shrinks. Shrinking moves data, which may take minutes. A crash in between leaves a file
 * that is larger than the file system in it; the next volume_settle() uses the rest. */
int volume_resize(const char *file, int volume, uint64_t size, struct error *err);

/*
 * Allocates what is missing of a file that has holes: older versions made sparse ones, and copying
 * a file may make one of it. The volume is shrunk first to what it needs and may have. *ret_sparse:
 * holes remain, and a full disk means write errors in the volume. -1 for that reason: the disk has
 * no room for them now.
 */
int volume_settle(const char *file, int volume, const struct volume_state *state, bool *ret_sparse,
                  struct error *err);
